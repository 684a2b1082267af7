#include "monitoring/straggler.h"

#include <stdbool.h>
#include <stdint.h>

static bool is_work(enum timer_phase phase) {
  return phase == TIMER_DATA || phase == TIMER_FORWARD || phase == TIMER_BACKWARD ||
         phase == TIMER_OPTIMIZER;
}

/* How many ranks took less than rank `r`, ties by rank. */
static int place_of(const double *seconds, int ranks, enum timer_phase phase, int r) {
  const double own = seconds[(int64_t)r * TIMER_PHASES + (int)phase];
  int place = 0;
  for (int i = 0; i < ranks; i++) {
    const double other = seconds[(int64_t)i * TIMER_PHASES + (int)phase];
    place += other < own || (other == own && i < r);
  }
  return place;
}

static double median(const double *seconds, int ranks, enum timer_phase phase) {
  for (int r = 0; r < ranks; r++)
    if (place_of(seconds, ranks, phase, r) == (ranks - 1) / 2)
      return seconds[(int64_t)r * TIMER_PHASES + (int)phase];
  return 0;
}

struct straggler straggler_find(const double *seconds, int ranks) {
  struct straggler found = {.phase = TIMER_OTHER, .ratio = 1};
  double excess = 0;
  for (int p = 0; p < TIMER_PHASES; p++) {
    const enum timer_phase phase = (enum timer_phase)p;
    if (!is_work(phase)) continue;
    const double middle = median(seconds, ranks, phase);
    for (int r = 0; r < ranks; r++) {
      const double own = seconds[(int64_t)r * TIMER_PHASES + p];
      if (own - middle <= excess || middle <= 0) continue;
      excess = own - middle;
      found = (struct straggler){r, phase, own, own / middle};
    }
  }
  return found;
}
