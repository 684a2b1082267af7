/* The arrays of a training as items of a checkpoint. */
#ifndef STAGES_TRAIN_TRAIN_ITEMS_H
#define STAGES_TRAIN_TRAIN_ITEMS_H

#include "sharding/checkpoint.h"
#include "stages/train/train.h"

/* model.NAME of every parameter that is not derived, in the type it has in memory; low.NAME,
 * first.NAME, second.NAME and ema.NAME of the optimizer's state of those that are trained;
 * teacher.NAME of a teacher that is an earlier student; and the window of losses. With
 * `weights_only`: model.NAME and ema.NAME. The list lives in `arena`. Local.
 */
void train_items_list(struct checkpoint_items *items, const struct train *train, bool weights_only,
                      struct arena *arena);

#endif
