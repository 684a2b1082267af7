/* Self-attention as the flow transformers and the GPT use it: one fused map to q, k and v,
 * normalised q and k per head, rotary positions, output map.
 */
#ifndef STAGES_MODEL_NETWORKS_SELF_ATTENTION_H
#define STAGES_MODEL_NETWORKS_SELF_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/networks/sequence.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct self_attention_options {
  int64_t width, heads; /* heads divide width */
  bool bias;            /* of both maps */
  bool plain;           /* q and k are not normalised */
  bool interleaved;     /* rotary pairs (2i, 2i + 1), else (i, i + D / 2) */
  double epsilon;       /* of the norms of q and k */
};

struct self_attention {
  struct self_attention_options options;
  struct param *qkv, *qkv_bias, *q_norm, *k_norm, *proj, *proj_bias;
};

/* Declares PREFIX.{qkv,q_norm,k_norm,proj}, without norms when plain; matrices Xavier-uniform on
 * their fused shape. Local. */
void self_attention_declare(struct self_attention *attention, struct params *params,
                            const struct self_attention_options *options, const char *prefix);

/* y[n, width] from x[n, width], n rows of the sequences. Local. */
struct value *self_attention_forward(struct tape *tape, const struct self_attention *attention,
                                     struct value *x, const struct sequence *sequence);

#endif
