#include "monitoring/progress.h"

#include <stdio.h>

#include "monitoring/timer.h"

void progress_start(struct progress *progress, int64_t first, int64_t total) {
  *progress = (struct progress){.first = first, .total = total, .started = timer_now()};
}

double progress_left(const struct progress *progress, int64_t done) {
  const int64_t steps = done - progress->first;
  if (steps <= 0) return 0;
  const double each = (timer_now() - progress->started) / (double)steps;
  return each * (double)(progress->total - done);
}

char *progress_time(char out[PROGRESS_TIME_BYTES], double seconds) {
  const double bounded = seconds < 0 ? 0 : seconds > 1e9 ? 1e9 : seconds;
  const int whole = (int)(bounded + 0.5);
  if (whole < 60) snprintf(out, PROGRESS_TIME_BYTES, "%d s", whole);
  if (whole >= 60 && whole < 3600)
    snprintf(out, PROGRESS_TIME_BYTES, "%d:%02d", whole / 60, whole % 60);
  if (whole >= 3600)
    snprintf(out, PROGRESS_TIME_BYTES, "%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
  return out;
}

char *progress_count(char out[PROGRESS_COUNT_BYTES], double count) {
  static const char units[] = {0, 'k', 'M', 'G', 'T', 'P'};
  size_t unit = 0;
  while (count >= 999.5 && unit + 1 < sizeof units) {
    count /= 1000;
    unit++;
  }
  const int digits = unit == 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2;
  snprintf(out, PROGRESS_COUNT_BYTES, "%.*f%s", digits, count, (const char[]){units[unit], 0});
  return out;
}
