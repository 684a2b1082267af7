/* The loss on held-out rows. */
#ifndef STAGES_TRAIN_TRAIN_VALIDATE_H
#define STAGES_TRAIN_TRAIN_VALIDATE_H

#include "stages/train/train_losses.h"

/* Runs the first validate_rows held-out rows, with noise that is the same for the life of the run
 * and for every number of ranks, through the weights as they are. Collective over world. */
enum status train_validate(struct train *train, struct train_losses *losses);

#endif
