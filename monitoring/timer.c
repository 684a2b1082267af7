#include "monitoring/timer.h"

#include <time.h>

#include "monitoring/watchdog.h"

static const char *const names[] = {
#define PHASE(NAME, name) #name,
#include "monitoring/timer_phases.def"
#undef PHASE
};

double timer_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void timer_start(struct timer *timer) {
  *timer =
      (struct timer){.watchdog = timer->watchdog, .since = timer_now(), .running = TIMER_OTHER};
  if (timer->watchdog) watchdog_begin_phase(timer->watchdog, TIMER_OTHER);
}

enum timer_phase timer_switch(struct timer *timer, enum timer_phase phase) {
  const enum timer_phase ended = timer->running;
  const double now = timer_now();
  timer->seconds[ended] += now - timer->since;
  timer->since = now;
  timer->running = phase;
  if (timer->watchdog) watchdog_begin_phase(timer->watchdog, phase);
  return ended;
}

double timer_total(const struct timer *timer) {
  double total = 0;
  for (int i = 0; i < TIMER_PHASES; i++) total += timer->seconds[i];
  return total;
}

const char *timer_phase_name(enum timer_phase phase) {
  return names[phase];
}
