/* Teachers that a derivative of the student bends: the target of identities that hold for a flow
 * map along its flow (stages/flow/cfm_eulerian.c, cfm_lagrangian.c).
 *
 *   bent logit = logit - log(max(a - b (r - <q, r>), floor)), r = rate w'
 *
 * with q = softmax(x w') the student and `rate` the change of its hidden states x: r are the rates
 * of its logits, and q (r - <q, r>) those of q. All of it streams; nothing has a gradient.
 */
#ifndef STAGES_MODEL_LAYERS_HEAD_BEND_H
#define STAGES_MODEL_LAYERS_HEAD_BEND_H

#include "stages/model/layers/head.h"
#include "stages/model/layers/head_backward.h"

struct head_bend {
  const struct value *rate; /* [n, c] */
  float *a, *b;             /* [n] */
};

/* What is gathered of all tokens: arrays of [N, c] elements and [N] sums. */
struct head_bent {
  const struct head_tokens *tokens; /* borrowed */
  const struct param *w;            /* of the student */
  void *rate, *mean, *a, *b;
};

/* Gathers, and finds the means <q, r> from the student's states x_all[N, c]: one pass over the
 * table. `tokens` is borrowed as long as `bent` is used. Collective over the vocabulary group;
 * failures are left in tape->status. */
void head_bend_open(struct tape *tape, struct head_bent *bent, const struct head_bend *bend,
                    const struct head_tokens *tokens, const struct head *head, const void *x_all);

/* Bends the teacher's logits of a block in place; `rates` is scratch of as many sums. Local. */
void head_bend_block(struct tape *tape, const struct head_bent *bent,
                     const struct head_block *block, void *logits, void *rates);

/* Sets lse[N] to the log-sum-exps of bent logits of a teacher's states: one pass over the table.
 * Collective over the vocabulary group. */
void head_bend_lse(struct tape *tape, const struct head_bent *bent, void *lse, const void *states,
                   const struct param *w);

#endif
