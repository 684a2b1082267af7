#include "stages/train/train_saving.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "monitoring/log.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/file.h"
#include "stages/train/train_saved.h"

enum { SAVE_TRIES = 3, PAUSE_SECONDS = 30, LOOKS_PER_SECOND = 5 };

static void sleep_for(double seconds) {
  const double whole = (double)(time_t)seconds;
  const struct timespec pause = {.tv_sec = (time_t)whole,
                                 .tv_nsec = (long)(1e9 * (seconds - whole))};
  nanosleep(&pause, NULL);
}

static enum status save(struct train *train) {
  TRY(comm_agree(train->grid.world, metric_file_sync(&train->metrics)));
  const double begun = timer_now();
  timer_switch(&train->timer, TIMER_CHECKPOINT);
  const enum status status = train_saved_write(train);
  timer_switch(&train->timer, TIMER_OTHER);
  train_clock_saved(&train->clock, timer_now() - begun);
  return status;
}

static enum status place(char path[PATH_MAX], const struct train *train, const char *name) {
  char folder[PATH_MAX];
  TRY(manifest_join(folder, train->stage->folder, TRAIN_CHECKPOINTS));
  return manifest_join(path, folder, name);
}

/* Rank 0: until the next try is due; false when the pause is over. */
static bool wait_for_try(struct train *train, const char *wake, double end) {
  const double next = timer_now() + PAUSE_SECONDS;
  while (timer_now() < next && timer_now() < end && !file_exists(wake)) {
    if (stage_stop_requested() || train_clock_is_over(&train->clock, train->stage->log))
      return false;
    sleep_for(1.0 / LOOKS_PER_SECOND);
  }
  if (file_exists(wake) && file_remove(wake) != STATUS_OK) error_clear(); /* a hint, no more */
  return timer_now() < end;
}

/* Tries again until it succeeds or the pause is over: then WRITE, with the report of the last try.
 */
static enum status pause_for_room(struct train *train) {
  struct comm *world = train->grid.world;
  const double end = timer_now() + train->options->save_pause;
  char wake[PATH_MAX];
  enum status status = STATUS_WRITE;
  if (train->options->save_pause <= 0) return status;
  TRY(place(wake, train, "go-on"));
  log_warn(train->stage->log,
           "paused for at most %g s, until checkpoints can be written: make room, then wait, or "
           "make the file '%s' to go on at once",
           train->options->save_pause, wake);
  while (status == STATUS_WRITE) {
    timer_switch(&train->timer, TIMER_CHECKPOINT); /* the phase that may be long */
    bool again = world->rank == 0 && wait_for_try(train, wake, end);
    TRY(comm_broadcast(world, &again, (int64_t)sizeof again, 0));
    if (!again) return status;
    status = save(train);
  }
  return status;
}

/* One last checkpoint in the room that was kept for it. */
static enum status use_reserve(struct train *train) {
  bool dropped;
  TRY(train_saved_drop_reserve(train, &dropped));
  if (!dropped) return STATUS_WRITE;
  TRY(save(train));
  FAIL(STATUS_WRITE,
       "step %" PRId64 " is saved in the room that save_reserve had kept; nothing is lost, but no "
       "further checkpoint can be written: make room in '%s'",
       train->counts.step, train->stage->folder);
}

/* When no try has helped. */
static enum status save_at_last(struct train *train, int *failures) {
  enum status status = pause_for_room(train);
  if (status == STATUS_WRITE) status = use_reserve(train);
  if (status == STATUS_OK) *failures = 0;
  return status;
}

enum status train_saving_step(struct train *train, int *failures) {
  const enum status status = save(train);
  if (status != STATUS_WRITE) {
    *failures = 0;
    return status;
  }
  (*failures)++;
  log_warn(train->stage->log, "step %" PRId64 ": no checkpoint (%s); try %d of %d",
           train->counts.step, error_message(), *failures, SAVE_TRIES);
  if (*failures >= SAVE_TRIES) return save_at_last(train, failures);
  error_clear();
  sleep_for(1 << (*failures - 1));
  return STATUS_OK;
}
