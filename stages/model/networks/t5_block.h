/* What the encoder and the decoder of T5 are made of: attention and feed-forward sublayers, each
 * with its norm before it, its dropout behind it, and the residual sum. No biases; scores are not
 * divided by the root of the head width. Parameter names are those of Hugging Face checkpoints;
 * initial values keep unit variance through every map, as in the paper's code.
 */
#ifndef STAGES_MODEL_NETWORKS_T5_BLOCK_H
#define STAGES_MODEL_NETWORKS_T5_BLOCK_H

#include "sharding/vocab.h"
#include "stages/model/layers/attention.h"
#include "stages/model/networks/t5_config.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct t5_attention {
  struct param *norm, *q, *k, *v, *o;
};

struct t5_feedforward {
  struct param *norm, *wi, *wi_gated, *wo; /* v1.1: wi = wi_0, wi_gated = wi_1 */
};

/* Dropout of a training pass: draws are functions of (seed, sample, step, place). */
struct t5_dropout {
  double share; /* 0: none */
  uint64_t seed;
  const int64_t *samples; /* [batch] borrowed until backward */
  uint32_t step;
};

/* Declares PREFIX.layer_norm and PREFIX.KIND.{q,k,v,o}; KIND is SelfAttention or EncDecAttention.
 * Local. */
void t5_attention_declare(struct t5_attention *attention, struct params *params,
                          const struct t5_config *config, const char *prefix, const char *kind);

/* Declares PREFIX.layer_norm and PREFIX.DenseReluDense.{wi,wo}, or wi_0 and wi_1. Local. */
void t5_feedforward_declare(struct t5_feedforward *feedforward, struct params *params,
                            const struct t5_config *config, const char *prefix);

/* Declares the table of relative positions of a stack, encoder or decoder. Local. */
struct param *t5_bias_declare(struct params *params, const struct t5_config *config,
                              const char *stack);

/* What the rows of a pass are, beside the states themselves. */
struct t5_pass {
  const struct t5_config *config;
  int64_t batch, positions;
  const struct t5_dropout *dropout; /* NULL: none */
};

/* The rows of the shared table: table[ids], dropped. `vocab` may be NULL: the table is whole here.
 * Collective over the vocabulary group, else local. */
struct value *t5_embed(struct tape *tape, const struct t5_pass *pass, struct vocab *vocab,
                       struct param *table, const int32_t *ids, const char *place);

/* h + what its rows read in themselves, or in `memory` where that is not NULL; `mask` tells keys,
 * ranges and bias. `place` names the draws of dropout. Local. */
struct value *t5_attention_forward(struct tape *tape, const struct t5_attention *attention,
                                   const struct t5_pass *pass, struct value *h,
                                   struct value *memory, const struct attention *mask,
                                   const char *place);
struct value *t5_feedforward_forward(struct tape *tape, const struct t5_feedforward *feedforward,
                                     const struct t5_pass *pass, struct value *h,
                                     const char *place);

/* x as it was dropped. Local. */
struct value *t5_drop(struct tape *tape, const struct t5_pass *pass, struct value *x,
                      const char *place);

#endif
