/* The watchdog of a training (R-MPI-4). */
#ifndef STAGES_TRAIN_TRAIN_WATCH_H
#define STAGES_TRAIN_TRAIN_WATCH_H

#include "stages/train/train.h"

/* Watches the phases of train->timer from now on (option hang_seconds). Collective over world. */
enum status train_watch_start(struct train *train);

/* Local. */
void train_watch_stop(struct train *train);

#endif
