/* The mean row of a table under the softmax of the vocabulary head. */
#ifndef STAGES_MODEL_LAYERS_HEAD_EXPECTATION_H
#define STAGES_MODEL_LAYERS_HEAD_EXPECTATION_H

#include "stages/model/layers/head.h"

/* A constant y[n, d] = softmax(x w^T) table, for table [V, d] sliced as the head: one streamed pass
 * with an online softmax, never n x V. head->targets and head->weight are not read. Collective over
 * the vocabulary group; failures are left in tape->status. */
struct value *head_expectation(struct tape *tape, struct value *x, const struct head *head,
                               const struct param *table);

#endif
