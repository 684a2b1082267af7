/* Signals that ask a stage to stop; apart, since tests bring their own stage_stop_requested. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "stages/stage.h"

static sigset_t stop_signals;
static atomic_int stop_requests; /* written by the watching thread only */

/* A second request means that the time to stop in order is over (R-SLM-1). */
static void *watch(void *unused) {
  int signal;
  while (sigwait(&stop_signals, &signal) == 0)
    if (atomic_fetch_add(&stop_requests, 1) > 0) _exit(error_exit_code(STATUS_STOPPED));
  return unused;
}

enum status stage_watch_signals(void) {
  static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
  pthread_t watcher;
  sigemptyset(&stop_signals);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    sigaddset(&stop_signals, signals[i]);
  pthread_sigmask(SIG_BLOCK, &stop_signals, NULL);
  const int code = pthread_create(&watcher, NULL, watch, NULL);
  CHECK(code == 0, STATUS_ENVIRONMENT, "no thread to watch for signals (error %d)", code);
  pthread_detach(watcher);
  return STATUS_OK;
}

bool stage_stop_requested(void) {
  return atomic_load(&stop_requests) > 0;
}
