/* The vocabulary head: projection, softmax and cross-entropy over slices of the vocabulary. */
#ifndef STAGES_MODEL_LAYERS_HEAD_H
#define STAGES_MODEL_LAYERS_HEAD_H

#include <stdint.h>

#include "sharding/vocab.h"
#include "stages/model/layers/head_tokens.h"
#include "stages/model/tape/tape.h"

/* Per-token results, arrays of n doubles or NULL where not wanted. */
struct head_result {
  double *loss;      /* -log softmax(target); 0 without a target */
  double *smoothing; /* what label smoothing adds to it: smoothing * (target's - mean logit) */
  double *penalty;   /* log_sum_exp_penalty * log-sum-exp squared */
  double *log_sum_exp;
  double *target_logit;
  double *square_sum; /* sum of squared probabilities */
  int32_t *argmax;    /* most probable id; the lowest on ties */
};

struct head {
  struct vocab *vocab;    /* borrowed: group and slices (sharding/vocab.h) */
  struct param *w;        /* [V, c], sliced as vocab says */
  struct param *b;        /* [V, 1] PARAM_VECTOR-typed column, or NULL */
  const int32_t *targets; /* [n], borrowed until backward; -1: no target */
  const float *weight;    /* [n] weight of each token's loss, borrowed until backward; NULL: 0.
                             Forward reads only which are 0; the values are read in backward, so the
                             caller may set them from the results (adaptive weights) */
  double smoothing; /* e: the target is 1 - e at its id plus e / V everywhere (arXiv 1512.00567,
                       section 7) */
  double log_sum_exp_penalty;       /* z-loss (arXiv 2204.02311, section 5) */
  const struct head_tiling *tiling; /* borrowed until backward; NULL: the usual blocks and tiles */
};

/* Streams (token block x vocabulary tile); never holds n x V: beside N x c arrays for the N tokens
 * of the group it takes a few MiB (tests/unit/stages/model/head_memory). With weights, tokens of
 * weight 0 or without a target are left out and their results are 0 (argmax: -1); without weights
 * all tokens have results and no gradient flows. Adds sum_i weight[i] * (loss + smoothing +
 * penalty)[i] to the objective: its gradient flows into x[n, c], w and b in backward, recomputing
 * logits once. The bits do not depend on the group, nor on the tiling as head_tokens.h says.
 * Collective over the vocabulary group. Failures are left in tape->status. */
void head_forward(struct tape *tape, struct head_result *result, struct value *x,
                  const struct head *head);

#endif
