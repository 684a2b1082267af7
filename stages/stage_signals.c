/* Signals that ask a stage to stop; apart, since tests bring their own stage_stop_requested. */
#include <signal.h>
#include <unistd.h>

#include "stages/stage.h"

static volatile sig_atomic_t stop_requests; /* written by the handler only */

/* A second request means that the time to stop in order is over (R-SLM-1). */
static void request_stop(int signal) {
  (void)signal;
  if (++stop_requests > 1) _exit(error_exit_code(STATUS_STOPPED));
}

void stage_watch_signals(void) {
  static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
  struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    sigaction(signals[i], &action, NULL);
}

bool stage_stop_requested(void) {
  return stop_requests > 0;
}
