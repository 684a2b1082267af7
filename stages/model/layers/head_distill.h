/* Distillation through the vocabulary head: divergence from a mixture of two teacher softmaxes. */
#ifndef STAGES_MODEL_LAYERS_HEAD_DISTILL_H
#define STAGES_MODEL_LAYERS_HEAD_DISTILL_H

#include "stages/model/layers/head.h"

/* The target p = omega softmax(first w^T) + (1 - omega) softmax(second w^T), without gradient. */
struct head_teacher {
  struct param *w;                    /* [V, c], sliced as the student's; may be the student's */
  const struct value *first, *second; /* hidden states [n, c] */
  const double *omega;                /* [n] in [0, 1], borrowed until backward */
};

/* Arrays of n doubles. */
struct head_distill_result {
  double *loss;     /* KL(p || q) */
  double *distance; /* ||q - p||^2 */
};

/* Adds sum_i weight[i] * KL(p_i || q_i) to the objective, q = softmax(x w^T) of the student `head`
 * (targets are not read). Weights are read as in head_forward. Streams (token block x vocabulary
 * tile) and recomputes the three tiles in backward. Collective over the vocabulary group; failures
 * are left in tape->status. */
void head_distill_forward(struct tape *tape, struct head_distill_result *result, struct value *x,
                          const struct head *head, const struct head_teacher *teacher);

#endif
