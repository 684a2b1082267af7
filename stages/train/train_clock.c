#include "stages/train/train_clock.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "monitoring/timer.h"
#include "pipeline/base/text.h"

#define END_VARIABLE "SLURM_JOB_END_TIME"

static const double EXPECTED_RATE = 1e8; /* bytes a second of a shared file system, in all */
static const double ENDING = 5;          /* seconds that the ranks and their launcher take to end */

/* Infinitely many where Slurm tells no end. */
static double seconds_of_job(struct log *log) {
  const char *text = getenv(END_VARIABLE);
  int64_t end;
  if (!text) return INFINITY;
  if (text_parse_integer(&end, text)) return (double)(end - (int64_t)time(NULL));
  log_warn(log,
           END_VARIABLE
           " is '%s', not a number of seconds since 1970; only a signal will stop this job in time",
           text);
  return INFINITY;
}

void train_clock_start(struct train_clock *clock, struct log *log, const struct options *options,
                       double bytes) {
  const double limit = options->time_limit > 0 ? options->time_limit : INFINITY;
  const double left = fmin(seconds_of_job(log), limit), now = timer_now();
  *clock = (struct train_clock){.end = now + left, .save = bytes / EXPECTED_RATE, .asked = now};
}

void train_clock_saved(struct train_clock *clock, double seconds) {
  if (!clock->measured || seconds > clock->save) clock->save = seconds;
  clock->measured = true;
}

bool train_clock_is_over(struct train_clock *clock, struct log *log) {
  const double now = timer_now(), left = clock->end - now;
  const double step = now - clock->asked;
  clock->asked = now;
  if (left > 2 * clock->save + step + ENDING) return false;
  log_line(
      log,
      "%.1f s are left to this job: stopping, since a step takes %.1f s and a checkpoint %.1f s",
      left, step, clock->save);
  return true;
}
