#include "stages/train/schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* 0 at the end of warm-up, 1 at the last step. */
static double progress(const struct options *options, int64_t step) {
  const int64_t length = options->steps - 1 - options->warmup_steps;
  return length > 0 ? (double)(step - options->warmup_steps) / (double)length : 1;
}

double schedule_rate(const struct options *options, int64_t step) {
  const double top = options->learning_rate, last = options->final_learning_rate;
  if (step < options->warmup_steps) return top * (double)(step + 1) / (double)options->warmup_steps;
  const double done = progress(options, step);
  switch (options->schedule) {
  case SCHEDULE_COSINE:
    return top * (last + (1 - last) * 0.5 * (1 + cos(pi * done)));
  case SCHEDULE_LINEAR:
    return top * (last + (1 - last) * (1 - done));
  case SCHEDULE_CONSTANT:
    break;
  }
  return top;
}
