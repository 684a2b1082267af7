/* Gradients between the backward pass and the optimizer. */
#ifndef STAGES_TRAIN_TRAIN_EXCHANGE_H
#define STAGES_TRAIN_TRAIN_EXCHANGE_H

#include "stages/train/train.h"

/* Opens micro step `j`. Local. */
void train_exchange_begin(struct train *train, int64_t j);

/* Tape callback (context: the train): points a parameter's gradient at where it is made. */
void train_exchange_open(void *context, struct param *param);

/* Makes sliced parameters give their gradients in pieces. Local. */
void train_exchange_connect(struct train *train);

/* Tape callback (context: the train): a gradient is complete. Gradients are handed over for
 * summing in one order, that of the declarations from last to first, whatever order the backward
 * pass ends them in: a rank whose rows do not use some parameter keeps step with the others. */
void train_exchange_ready(void *context, struct param *param);

/* Hands over what is left of the micro step. Collective over world in the last one. */
enum status train_exchange_end(struct train *train);

/* Whether a step has two passes, whose gradients meet in train_exchange_finish. Local. */
bool train_exchange_keeps(const struct train *train);

/* Between them: sets the sums of the first aside. Collective over world. */
enum status train_exchange_keep(struct train *train);

/* Sums over ranks, mends the gradients of two passes (*cosine, see gradients_mend), turns the
 * gradients of derived parameters into those of their sources, and measures: train->squares and
 * *norm. Collective over world. */
enum status train_exchange_finish(struct train *train, double *norm, double *cosine);

#endif
