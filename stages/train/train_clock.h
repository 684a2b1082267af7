/* Stopping by the clock: a training leaves its checkpoint before its job's time is over (R-SLM-2).
 */
#ifndef STAGES_TRAIN_TRAIN_CLOCK_H
#define STAGES_TRAIN_TRAIN_CLOCK_H

#include <stdbool.h>

#include "monitoring/log.h"
#include "pipeline/config/options.h"

struct train_clock {
  double end;    /* of the job, by timer_now(); infinite: not known */
  double save;   /* seconds of the slowest checkpoint of this start; before one: as expected */
  double asked;  /* when the last question was, or the start */
  bool measured; /* `save` is of a checkpoint */
};

/* Takes the end of the job from SLURM_JOB_END_TIME (seconds since 1970, as Slurm sets it), and from
 * `time_limit` seconds from now, whichever comes first. The first checkpoint, of about `bytes` of
 * all ranks, is expected at 100 MB/s. A value that is no number is warned of and left. Local. */
void train_clock_start(struct train_clock *clock, struct log *log, const struct options *options,
                       double bytes);

/* Tells of a checkpoint. Local. */
void train_clock_saved(struct train_clock *clock, double seconds);

/* Asked after each step: whether the time left would not do for another one, for twice the
 * slowest checkpoint, and for 5 s to end in; says so in the log. Local. */
bool train_clock_is_over(struct train_clock *clock, struct log *log);

#endif
