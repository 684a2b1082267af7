/* The encoder of T5 (Raffel et al. 2020), v1.0 (ReLU) and v1.1 (gated GELU), with the parameter
 * names of Hugging Face checkpoints. Root mean square norms; a bias by relative position, from the
 * first layer's table, is added to the scores of every layer.
 */
#ifndef STAGES_MODEL_NETWORKS_T5_ENCODER_H
#define STAGES_MODEL_NETWORKS_T5_ENCODER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "stages/model/networks/t5_block.h"
#include "stages/model/networks/t5_config.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct t5_block {
  const struct param_layer *layer;
  struct t5_attention attention;
  struct t5_feedforward feedforward;
};

struct t5_encoder {
  struct t5_config config;
  struct param *table;         /* shared.weight [V, width]; may be sliced by rows */
  struct param *relative_bias; /* [buckets, heads] */
  struct t5_block *blocks;
  struct param *final_norm;
};

/* Declares the encoder into `params`, everything frozen when `frozen`. The blocks live in the arena
 * of the set. Local. */
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
  struct vocab *vocab;                  /* of a table that is sliced; NULL: it is whole here */
  const struct t5_dropout *dropout;     /* borrowed until backward; NULL: none */
};

/* Hidden states after the final norm [batch * positions, width]. Collective over the vocabulary
 * group, where there is one, else local. */
struct value *t5_encoder_forward(struct tape *tape, const struct t5_encoder *net,
                                 const struct t5_input *input);

/* Fills the bound parameters of a set that holds one encoder from a Hugging Face
 * model.safetensors: F32, F16 or BF16, converted to `element`. Decoder weights are passed over.
 * Local. MISMATCH names a tensor that is missing, has another shape or is not known; DAMAGED as
 * safetensors_open. */
enum status t5_encoder_load(const struct params *params, enum dtype element, const char *path);

#endif
