/* Which rank holds the others up, said with the progress of steps (R-MPI-5). */
#ifndef STAGES_TRAIN_TRAIN_STRAGGLER_H
#define STAGES_TRAIN_TRAIN_STRAGGLER_H

#include "stages/train/train.h"

/* Takes the phases of the step that ends; when its progress is due, compares the ranks and notes on
 * rank 0 which one stands out. Collective over world in such steps, else local. ENVIRONMENT when
 * memory is out. */
enum status train_straggler_step(struct train *train);

#endif
