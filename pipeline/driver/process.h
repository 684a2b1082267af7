/* Runs one program to its end: copies what it prints to the terminal and a log, passes requests to
 * stop on, and ends it when this process dies.
 */
#ifndef PIPELINE_DRIVER_PROCESS_H
#define PIPELINE_DRIVER_PROCESS_H

#include <stdbool.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/driver/lease.h"

struct process_plan {
  char *const *words;   /* program and arguments, ended by NULL; found by PATH */
  const char *log;      /* file that its output is appended to */
  struct lease *lease;  /* touched while it runs, and joined by it; may be NULL */
  int stop_signal;      /* what a request to stop is passed on as */
  double start_seconds; /* while it has said nothing, a first request waits so long: launchers lose
                           or die of what comes before their ranks run */
};

struct process_outcome {
  enum status status; /* what its exit code means */
  int exit_code;      /* as a shell shows it: 128 + the signal that ended it */
  double seconds;
};

/* From now on TERM, INT, HUP, USR1 and USR2 are requests to stop, and a closed terminal is no
 * error. Once per process. Local. */
void process_watch_signals(void);

/* Whether a stop was requested. Local. */
bool process_stop_requested(void);

/* Starts the program in a process group of its own and waits for its end. A first request to stop
 * is passed on as plan->stop_signal, a second one as SIGTERM, a third as SIGKILL. Local.
 * ENVIRONMENT when it cannot be started, WRITE when the log cannot be written. */
enum status process_run(struct process_outcome *outcome, const struct process_plan *plan);

/* Runs a short program to its end and appends what it prints on stdout to `output`. Local.
 * ENVIRONMENT when it cannot be started, cannot be read or does not end with 0. */
enum status process_capture(struct text *output, char *const *words);

/* Replaces this process by a program. Returns only on failure: ENVIRONMENT. Local. */
enum status process_become(char *const *words);

#endif
