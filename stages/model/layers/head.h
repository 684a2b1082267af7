/* The vocabulary head: projection, softmax and cross-entropy over slices of the vocabulary. */
#ifndef STAGES_MODEL_LAYERS_HEAD_H
#define STAGES_MODEL_LAYERS_HEAD_H

#include <stdint.h>

#include "sharding/vocab.h"
#include "stages/model/tape/tape.h"

/* Per-token results, arrays of n doubles or NULL where not wanted. */
struct head_result {
  double *loss; /* -log softmax(target); 0 without a target */
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
};

/* Streams (token block x vocabulary tile); never holds n x V: beside N x c arrays for the N tokens
 * of the group it takes a few MiB (tests/unit/stages/model/head_memory). With weights, tokens of
 * weight 0 or without a target are left out and their results are 0 (argmax: -1); without weights
 * all tokens have results and no gradient flows. Adds sum_i weight[i] * loss[i] to the
 * objective: its gradient flows into x[n, c], w and b in backward, recomputing logits once.
 * Collective over the vocabulary group. Failures are left in tape->status. */
void head_forward(struct tape *tape, struct head_result *result, struct value *x,
                  const struct head *head);

#endif
