#include "monitoring/watchdog.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double NANO = 1e9, LONGEST_TICK = 1;

static int64_t now(void) {
  return (int64_t)(timer_now() * NANO);
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(const double *durations, int64_t count) {
  double sorted[WATCHDOG_SAMPLES];
  const int64_t kept = count < WATCHDOG_SAMPLES ? count : WATCHDOG_SAMPLES;
  memcpy(sorted, durations, (size_t)kept * sizeof *sorted);
  qsort(sorted, (size_t)kept, sizeof *sorted, compare);
  return sorted[kept / 2];
}

/* Seconds after which a phase counts as hung. */
static double limit_of(const struct watchdog *watchdog, enum timer_phase phase) {
  const bool known = watchdog->counts[phase] >= WATCHDOG_LEAST;
  const bool may_last = phase == TIMER_CHECKPOINT || phase == TIMER_VALIDATION;
  const double least = watchdog->setup.seconds * (known && !may_last ? 1 : WATCHDOG_PATIENCE);
  const double usual =
      known ? WATCHDOG_FACTOR * median(watchdog->durations[phase], watchdog->counts[phase]) : 0;
  return usual > least ? usual : least;
}

static void note_duration(struct watchdog *watchdog, int64_t moment) {
  const int phase = watchdog->phase;
  const double seconds = (double)(moment - watchdog->since) / NANO;
  watchdog->durations[phase][watchdog->counts[phase]++ % WATCHDOG_SAMPLES] = seconds;
}

void watchdog_begin_step(struct watchdog *watchdog, int64_t step) {
  watchdog->step = step;
}

void watchdog_begin_phase(struct watchdog *watchdog, enum timer_phase phase) {
  const int64_t moment = now();
  if (!watchdog->runs) return;
  note_duration(watchdog, moment);
  watchdog->deadline = INT64_MAX;
  watchdog->phase = (int)phase;
  watchdog->since = moment;
  watchdog->deadline = moment + (int64_t)(NANO * limit_of(watchdog, phase));
}

static void pause_for(double seconds) {
  const time_t whole = (time_t)seconds;
  nanosleep(
      &(struct timespec){.tv_sec = whole, .tv_nsec = (long)(NANO * (seconds - (double)whole))},
      NULL);
}

static bool someone_asks(const struct watchdog *watchdog) {
  struct stat info;
  return stat(watchdog->setup.folder, &info) == 0;
}

/* The first rank that gets here sums up. */
static bool claims(const struct watchdog *watchdog) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/claimed", watchdog->setup.folder);
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (descriptor >= 0) close(descriptor);
  return descriptor >= 0;
}

static double tick_of(const struct watchdog *watchdog) {
  const double quarter = watchdog->setup.seconds / 4;
  return quarter < LONGEST_TICK ? quarter : LONGEST_TICK;
}

static void end_job(struct watchdog *watchdog) {
  struct watchdog_findings found = {{0}, {0}};
  (void)mkdir(watchdog->setup.folder, 0777); /* another rank may have been first */
  watchdog_answer(watchdog);
  const bool sums_up = claims(watchdog);
  pause_for((sums_up ? 4 : 20) * tick_of(watchdog) + 1);
  if (sums_up && watchdog_sum_up(watchdog, &found) == STATUS_OK)
    watchdog->setup.end(watchdog->setup.context, &found);
  watchdog->setup.end(watchdog->setup.context, NULL);
}

static void *watch(void *context) {
  struct watchdog *watchdog = context;
  while (!watchdog->ends) {
    pause_for(tick_of(watchdog));
    if (watchdog->ends) break;
    if (now() > watchdog->deadline || someone_asks(watchdog)) end_job(watchdog);
  }
  return NULL;
}

static int start_blocked(struct watchdog *watchdog) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int code = pthread_create(&watchdog->thread, NULL, watch, watchdog);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}

enum status watchdog_start(struct watchdog *watchdog, const struct watchdog_setup *setup) {
  *watchdog = (struct watchdog){.setup = *setup, .watched = pthread_self(), .since = now()};
  watchdog->deadline = INT64_MAX;
  if (setup->seconds <= 0) return STATUS_OK;
  CHECK(start_blocked(watchdog) == 0, STATUS_ENVIRONMENT,
        "no thread for the watchdog; raise the limit of processes, or set hang_seconds: 0");
  watchdog->runs = true;
  return STATUS_OK;
}

void watchdog_stop(struct watchdog *watchdog) {
  watchdog->ends = true;
  if (watchdog->runs) pthread_join(watchdog->thread, NULL);
  watchdog->runs = false;
}
