#include "stages/train/train_clock.h"

#include <stdlib.h>
#include <time.h>

#include "monitoring/timer.h"
#include "pipeline/base/text.h"

#define END_VARIABLE "SLURM_JOB_END_TIME"

static const double EXPECTED_RATE = 1e8; /* bytes a second of a shared file system, in all */
static const double ENDING = 5;          /* seconds that the ranks and their launcher take to end */

static double seconds_of_job(struct log *log) {
  const char *text = getenv(END_VARIABLE);
  int64_t end;
  if (!text) return 0;
  if (text_parse_integer(&end, text)) return (double)(end - (int64_t)time(NULL));
  log_warn(log,
           END_VARIABLE
           " is '%s', not a number of seconds since 1970; only a signal will stop this job in time",
           text);
  return 0;
}

void train_clock_start(struct train_clock *clock, struct log *log, const struct options *options,
                       double bytes) {
  double left = seconds_of_job(log);
  if (options->time_limit > 0 && (left == 0 || options->time_limit < left))
    left = options->time_limit;
  const double now = timer_now();
  *clock = (struct train_clock){
      .end = left == 0 ? 0 : now + left, .save = bytes / EXPECTED_RATE, .asked = now};
}

void train_clock_saved(struct train_clock *clock, double seconds) {
  if (!clock->measured || seconds > clock->save) clock->save = seconds;
  clock->measured = true;
}

bool train_clock_is_over(struct train_clock *clock, struct log *log) {
  const double now = timer_now(), left = clock->end - now;
  clock->step = now - clock->asked;
  clock->asked = now;
  if (clock->end == 0 || left > 2 * clock->save + clock->step + ENDING) return false;
  log_line(
      log,
      "%.1f s are left to this job: stopping, since a step takes %.1f s and a checkpoint %.1f s",
      left, clock->step, clock->save);
  return true;
}
