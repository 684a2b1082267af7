/* What a training does about its checkpoints, also where they cannot be written. */
#ifndef STAGES_TRAIN_TRAIN_SAVING_H
#define STAGES_TRAIN_TRAIN_SAVING_H

#include "stages/train/train.h"

/* Saves the step that was just done. When that fails, training goes on (OK is returned) and the
 * next call tries again; `failures` counts the tries in a row. After three the job waits for room
 * as long as save_pause says, trying again every half a minute, or as soon as somebody makes the
 * file checkpoints/go-on. Then the room of save_reserve is given up for one last checkpoint.
 * Collective over world. WRITE when that is how far it got: also when that last one was saved. */
enum status train_saving_step(struct train *train, int *failures);

#endif
