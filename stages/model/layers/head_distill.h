/* Distillation through the vocabulary head: divergence from one teacher's softmax, or a mixture of
 * two. */
#ifndef STAGES_MODEL_LAYERS_HEAD_DISTILL_H
#define STAGES_MODEL_LAYERS_HEAD_DISTILL_H

#include "stages/model/layers/head.h"
#include "stages/model/layers/head_bend.h"

/* The target p = omega softmax(first w^T) + (1 - omega) softmax(second w^T), without gradient. */
struct head_teacher {
  struct param *w;                    /* [V, c], sliced as the student's; may be the student's */
  const struct value *first, *second; /* hidden states [n, c]; no second: p is the first alone */
  const double *omega;                /* [n] in [0, 1], borrowed until backward; with a second */
  const struct head_bend *bend;       /* what changes the logits of the first, alone; or NULL */
};

/* Arrays of n doubles. */
struct head_distill_result {
  double *loss;     /* the divergence */
  double *distance; /* ||q - p||^2 */
};

/* Adds sum_i weight[i] * D_i to the objective, with q = softmax(x w^T) of the student `head` and D
 * = KL(p || q), KL(q || p) or (KL(p || m) + KL(q || m)) / 2, m = (p + q) / 2. Of the head, targets,
 * smoothing and penalty are not read; weights are as in head_forward. Streams (token block x
 * vocabulary tile): a pass for each teacher's log-sum-exp, for the Jensen-Shannon divergence also
 * for the student's, one for the divergence, and one in backward, which recomputes all tiles.
 * Collective over the vocabulary group; failures are left in tape->status. */
void head_distill_forward(struct tape *tape, struct head_distill_result *result, struct value *x,
                          const struct head *head, const struct head_teacher *teacher,
                          enum divergence divergence);

#endif
