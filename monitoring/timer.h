/* Wall-clock time by phase: exactly one phase runs at any moment. */
#ifndef MONITORING_TIMER_H
#define MONITORING_TIMER_H

enum timer_phase {
#define PHASE(NAME, name) TIMER_##NAME,
#include "monitoring/timer_phases.def"
#undef PHASE
  TIMER_PHASES
};

struct watchdog;

struct timer {
  struct watchdog *watchdog;    /* borrowed: told of every switch; or NULL */
  double seconds[TIMER_PHASES]; /* of each phase, up to the last switch */
  double since;                 /* when the running phase began */
  enum timer_phase running;
};

/* Seconds of a clock that never goes back; only differences mean something. Local. */
double timer_now(void);

/* Starts with all times zero, in phase `other`; the watchdog stays, so the timer was zeroed once.
 * Local. */
void timer_start(struct timer *timer);

/* Ends the running phase and begins another; returns the phase that ended. Local. */
enum timer_phase timer_switch(struct timer *timer, enum timer_phase phase);

/* Sum over phases, up to the last switch. Local. */
double timer_total(const struct timer *timer);

/* The phase's name, such as "forward". Borrowed. Local. */
const char *timer_phase_name(enum timer_phase phase);

#endif
