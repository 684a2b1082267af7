#include "stages/train/train_watch.h"

#include <stdio.h>

#include "pipeline/base/file.h"
#include "stages/stage_end.h"

/* What an earlier start left there would look like a question of this one. */
static enum status clear(const struct train *train) {
  return train->grid.world->rank == 0 ? file_remove(train->hang_folder) : STATUS_OK;
}

static enum status start(struct train *train) {
  return watchdog_start(&train->watchdog,
                        &(struct watchdog_setup){.world = train->grid.world,
                                                 .folder = train->hang_folder,
                                                 .seconds = train->options->hang_seconds,
                                                 .end = stage_end_hung});
}

enum status train_watch_start(struct train *train) {
  CHECK(snprintf(train->hang_folder, sizeof train->hang_folder, "%s/hang", train->stage->folder) <
            STAGE_PATH_BYTES,
        STATUS_MISMATCH, "%s: the path is too long", train->stage->folder);
  TRY(comm_agree(train->grid.world, clear(train)));
  train->timer.watchdog = &train->watchdog;
  return comm_agree(train->grid.world, start(train));
}

void train_watch_stop(struct train *train) {
  train->timer.watchdog = NULL;
  watchdog_stop(&train->watchdog);
}
