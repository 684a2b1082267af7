/* The learning rate of each step: a linear rise, then constant, cosine or linear. */
#ifndef STAGES_TRAIN_SCHEDULE_H
#define STAGES_TRAIN_SCHEDULE_H

#include <stdint.h>

#include "pipeline/config/options.h"

/* The learning rate of step `step`, 0 <= step < options->steps: learning_rate * (step + 1) /
 * warmup_steps during warm-up; afterwards as `schedule` says, reaching learning_rate *
 * final_learning_rate at the last step. A function of the step alone. Local. */
double schedule_rate(const struct options *options, int64_t step);

#endif
