/* What ranks say of themselves when one of them hangs, and what follows from it. */
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monitoring/watchdog.h"

enum { FRAMES = 64, WORD_BYTES = 64, HOST_BYTES = 128 };

static volatile sig_atomic_t stack_descriptor = -1; /* read by the handler only */
static volatile sig_atomic_t stack_written;

static void write_stack(int signal) {
  void *frames[FRAMES];
  (void)signal;
  backtrace_symbols_fd(frames, backtrace(frames, FRAMES), stack_descriptor);
  stack_written = 1;
}

/* Has the watched thread write its stack; it may be unable to. */
static void ask_for_stack(const struct watchdog *watchdog, int descriptor) {
  const struct timespec pause = {.tv_nsec = 10000000};
  struct sigaction action = {.sa_handler = write_stack, .sa_flags = SA_RESTART};
  void *first[1];
  (void)backtrace(first, 1); /* loads what it needs, which a handler must not */
  stack_descriptor = descriptor;
  stack_written = 0;
  sigaction(SIGRTMIN, &action, NULL);
  if (pthread_kill(watchdog->watched, SIGRTMIN) != 0) return;
  for (int i = 0; i < 50 && !stack_written; i++) nanosleep(&pause, NULL);
}

static void path_of(char path[PATH_MAX], const struct watchdog *watchdog, int rank) {
  snprintf(path, PATH_MAX, "%s/rank-%d", watchdog->setup.folder, rank);
}

/* One rank's answer. */
struct answer {
  bool given;
  int64_t step, calls;
  double seconds;
  char phase[WORD_BYTES], last[WORD_BYTES], host[HOST_BYTES];
};

void watchdog_answer(const struct watchdog *watchdog) {
  const struct comm *world = watchdog->setup.world;
  char path[PATH_MAX], host[HOST_BYTES] = "?";
  path_of(path, watchdog, world->rank);
  gethostname(host, sizeof host - 1);
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (descriptor < 0) return;
  dprintf(descriptor, "%" PRId64 " %" PRId64 " %.1f %s %s %s\n", (int64_t)watchdog->step,
          world->traffic.calls, timer_now() - (double)watchdog->since / 1e9,
          timer_phase_name((enum timer_phase)watchdog->phase), world->traffic.last, host);
  ask_for_stack(watchdog, descriptor);
  fsync(descriptor);
  close(descriptor);
}

static struct answer read_answer(const struct watchdog *watchdog, int rank) {
  struct answer answer = {0};
  char path[PATH_MAX];
  path_of(path, watchdog, rank);
  FILE *file = fopen(path, "r");
  if (!file) return answer;
  answer.given =
      fscanf(file, "%" SCNd64 " %" SCNd64 " %lf %63s %63s %127s", &answer.step, &answer.calls,
             &answer.seconds, answer.phase, answer.last, answer.host) == 6;
  fclose(file);
  return answer;
}

static enum status add_answer(struct text *found, int rank, const struct answer *answer) {
  if (!answer->given)
    return text_format(
        found, "rank %d: no answer; it is stopped or swapped out, or its host is gone\n", rank);
  return text_format(
      found, "rank %d on %s: step %" PRId64 ", %s for %.1f s, last exchange %" PRId64 " (%s)\n",
      rank, answer->host, answer->step, answer->phase, answer->seconds, answer->calls,
      answer->last);
}

/* Ranks that gave no answer; if all did, those that have made fewer exchanges than others. */
static bool is_blamed(const struct answer *answers, int size, int rank) {
  int64_t most = 0, least = INT64_MAX;
  bool all = true;
  for (int r = 0; r < size; r++) {
    all = all && answers[r].given;
    if (answers[r].given && answers[r].calls > most) most = answers[r].calls;
    if (answers[r].given && answers[r].calls < least) least = answers[r].calls;
  }
  if (!all) return !answers[rank].given;
  return answers[rank].calls == least && (least < most || size == 1);
}

/* The rank that has come furthest says what the others are missed in. */
static const struct answer *furthest(const struct answer *answers, int size) {
  const struct answer *best = &answers[0];
  for (int r = 1; r < size; r++)
    if (answers[r].given && (!best->given || answers[r].calls > best->calls)) best = &answers[r];
  return best;
}

static enum status blame(struct text *found, const struct answer *answers, int size) {
  const struct answer *best = furthest(answers, size);
  int blamed = 0;
  for (int r = 0; r < size; r++) {
    if (!is_blamed(answers, size, r)) continue;
    TRY(text_format(found, "%s%d", blamed ? ", " : "hang in rank ", r));
    blamed++;
  }
  if (!blamed) TRY(text_format(found, "hang in an exchange that every rank has reached"));
  return text_format(found, "; step %" PRId64 ", exchange %" PRId64 " (%s)", best->step,
                     best->calls, best->last);
}

enum status watchdog_sum_up(const struct watchdog *watchdog, struct watchdog_findings *found) {
  const int size = watchdog->setup.world->size;
  struct answer *answers = calloc((size_t)size, sizeof *answers);
  CHECK(answers, STATUS_ENVIRONMENT, "out of memory: a line for each rank");
  enum status status = STATUS_OK;
  for (int r = 0; r < size; r++) {
    answers[r] = read_answer(watchdog, r);
    if (status == STATUS_OK) status = add_answer(&found->ranks, r, &answers[r]);
  }
  if (status == STATUS_OK) status = blame(&found->verdict, answers, size);
  free(answers);
  TRY(status);
  return text_format(&found->verdict, "; stacks are in %s", watchdog->setup.folder);
}
