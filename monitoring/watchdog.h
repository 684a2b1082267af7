/* Ends a job in which some rank hangs (R-MPI-4): ranks that wait for it would wait for ever.
 *
 * A thread of each rank looks at how long the present phase of the step has lasted. Its limit is
 * WATCHDOG_FACTOR times the median of this phase so far, and at least the seconds that the setup
 * gives; WATCHDOG_PATIENCE times those for phases that may be long (checkpoints, validation) or
 * were not seen often enough. A rank beyond its limit makes the setup's folder. Every rank that
 * sees the folder writes there what it does and its stack; the first to claim it waits for the
 * others' answers, sums them up, and ends the job.
 *
 * Nothing is exchanged while all goes well. The thread blocks all signals.
 */
#ifndef MONITORING_WATCHDOG_H
#define MONITORING_WATCHDOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "monitoring/timer.h"
#include "pipeline/base/text.h"
#include "sharding/comm.h"

enum {
  WATCHDOG_FACTOR = 20,
  WATCHDOG_PATIENCE = 10,
  WATCHDOG_SAMPLES = 15, /* durations of a phase that are kept */
  WATCHDOG_LEAST = 5     /* durations before the median counts */
};

struct watchdog_findings {
  struct text verdict; /* which ranks, which step, which exchange */
  struct text ranks;   /* a line for each */
};

struct watchdog_setup {
  const struct comm *world; /* borrowed: rank, size and traffic are read */
  const char *folder;       /* borrowed: seen by all ranks, not there yet */
  double seconds;           /* least limit; 0: nothing is watched */
  /* Called by the thread of one rank with what was found, by those of the others with NULL a while
   * later. Ends the process. */
  void (*end)(void *context, const struct watchdog_findings *found);
  void *context; /* borrowed */
};

struct watchdog {
  struct watchdog_setup setup;
  pthread_t thread, watched; /* `watched` started the watchdog */
  bool runs;
  _Atomic bool ends;
  _Atomic int64_t step;
  _Atomic int phase;
  _Atomic int64_t since, deadline; /* nanoseconds of timer_now's clock */
  double durations[TIMER_PHASES][WATCHDOG_SAMPLES];
  int64_t counts[TIMER_PHASES]; /* of durations so far */
};

/* Starts the thread; nothing when setup->seconds is 0. `watchdog` does not move from then on.
 * Local. ENVIRONMENT when there is no thread to be had. */
enum status watchdog_start(struct watchdog *watchdog, const struct watchdog_setup *setup);

/* Ends the thread; accepts a zeroed watchdog. Local. */
void watchdog_stop(struct watchdog *watchdog);

/* The watched thread begins a step, or a phase of one (timer.c calls it). Local. */
void watchdog_begin_step(struct watchdog *watchdog, int64_t step);
void watchdog_begin_phase(struct watchdog *watchdog, enum timer_phase phase);

/* Writes this rank's answer into the folder, its stack included (watchdog_report.c). Local. */
void watchdog_answer(const struct watchdog *watchdog);

/* Sums up the answers that are there. Local. */
enum status watchdog_sum_up(const struct watchdog *watchdog, struct watchdog_findings *found);

#endif
