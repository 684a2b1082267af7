/* The encoder of T5 (Raffel et al. 2020), v1.0 (ReLU) and v1.1 (gated GELU), with the parameter
 * names of Hugging Face checkpoints. No biases; root mean square norms; scores are not divided by
 * the root of the head width; a bias by relative position, from the first layer's table, is added
 * to the scores of every layer.
 */
#ifndef STAGES_MODEL_NETWORKS_T5_ENCODER_H
#define STAGES_MODEL_NETWORKS_T5_ENCODER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct t5_config {
  int64_t vocabulary, width, heads, head_dim, feedforward, depth;
  int64_t buckets, max_distance; /* of relative positions: 32 and 128 */
  double epsilon;                /* of the norms: 1e-6 */
  bool gated;                    /* v1.1: gelu(wi_0 x) * (wi_1 x); v1.0: relu(wi x) */
};

struct t5_block {
  struct param *norm_attention, *q, *k, *v, *o;
  struct param *norm_feedforward, *wi, *wi_gated, *wo; /* v1.1: wi = wi_0, wi_gated = wi_1 */
};

struct t5_encoder {
  struct t5_config config;
  struct param *table;         /* shared.weight [V, width] */
  struct param *relative_bias; /* [buckets, heads] */
  struct t5_block *blocks;
  struct param *final_norm;
};

/* Declares the encoder into `params`, everything frozen when `frozen`; initial values are those of
 * the paper's code (unit variance through every map). The blocks live in the arena of the set.
 * Local. */
void t5_encoder_declare(struct t5_encoder *net, struct params *params,
                        const struct t5_config *config, bool frozen);

/* Which keys each token sees. */
struct t5_input {
  int64_t batch, positions;
  const int32_t *tokens;  /* [batch * positions], ids in [0, V); borrowed until backward */
  const int32_t *lengths; /* [batch] valid tokens; what follows is never a key; NULL: all */
  const int32_t *sources; /* [batch] the first tokens, which see one another only; NULL: none */
  const struct attention_range *ranges; /* [batch * positions] visible keys of each token, in place
                                           of lengths and sources; borrowed until backward */
};

/* Hidden states after the final norm [batch * positions, width]. Local. */
struct value *t5_encoder_forward(struct tape *tape, const struct t5_encoder *net,
                                 const struct t5_input *input);

/* Reads a Hugging Face config.json. Local. MISMATCH names the file and key: missing, not a T5, or
 * a feed-forward kind other than relu and gated-gelu. */
enum status t5_config_read(struct t5_config *config, const char *path);

/* Fills the bound parameters of a set that holds one encoder from a Hugging Face
 * model.safetensors: F32, F16 or BF16, converted to `element`. Decoder weights are passed over.
 * Local. MISMATCH names a tensor that is missing, has another shape or is not known; DAMAGED as
 * safetensors_open. */
enum status t5_encoder_load(const struct params *params, enum dtype element, const char *path);

#endif
