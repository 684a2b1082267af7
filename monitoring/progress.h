/* How far a loop of known length is, and when it will end. */
#ifndef MONITORING_PROGRESS_H
#define MONITORING_PROGRESS_H

#include <stdint.h>

enum { PROGRESS_TIME_BYTES = 24, PROGRESS_COUNT_BYTES = 16 };

struct progress {
  int64_t first, total; /* steps done when this start began, and to do in all */
  double started;       /* timer_now() then */
};

/* Starts counting at `first` of `total` steps. Local. */
void progress_start(struct progress *progress, int64_t first, int64_t total);

/* Seconds left when `done` steps are done, from the mean speed of this start; 0 before the first.
 * Local. */
double progress_left(const struct progress *progress, int64_t done);

/* Writes a duration as "41 s", "3:05" or "2:03:05". Returns `out`. Local. */
char *progress_time(char out[PROGRESS_TIME_BYTES], double seconds);

/* Writes a large count short: "950", "12.3k", "1.72M", "2.1G". Returns `out`. Local. */
char *progress_count(char out[PROGRESS_COUNT_BYTES], double count);

#endif
