#define _DEFAULT_SOURCE
#include "pipeline/driver/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 14, NOT_FOUND = 127, SIGNALLED = 128, DRAIN_ROUNDS = 20 };

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
enum { STOP_SIGNALS = sizeof stop_signals / sizeof *stop_signals };
static volatile sig_atomic_t stop_requests; /* written by the handler only */

static void count_request(int signal) {
  (void)signal;
  stop_requests++;
}

static void ignore(int signal) {
  (void)signal; /* a handler, unlike SIG_IGN, wakes pselect and is reset by exec */
}

void process_watch_signals(void) {
  struct sigaction action = {.sa_handler = count_request};
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int i = 0; i < STOP_SIGNALS; i++) {
    sigaction(stop_signals[i], &action, NULL);
    sigaddset(&blocked, stop_signals[i]);
  }
  action.sa_handler = ignore;
  sigaction(SIGCHLD, &action, NULL);
  sigaction(SIGPIPE, &action, NULL);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, NULL); /* let in by pselect and process_stop_requested */
}

bool process_stop_requested(void) {
  sigset_t pending;
  if (sigpending(&pending) == 0)
    for (int i = 0; i < STOP_SIGNALS; i++)
      if (sigismember(&pending, stop_signals[i]) == 1) return true;
  return stop_requests > 0;
}

static double now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* In the child: becomes the program. Does not return. */
static void become(const struct process_plan *plan, int output, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  const int input = open("/dev/null", O_RDONLY);
  setpgid(0, 0); /* Ctrl-C reaches the driver, which passes it on */
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(NOT_FOUND);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execvp(plan->words[0], plan->words);
  fprintf(stderr, "cannot start '%s': %s\n", plan->words[0], strerror(errno));
  _exit(NOT_FOUND);
}

/* What is known of a running program. */
struct watch {
  const struct process_plan *plan;
  pid_t child;
  int output, log;
  int passed_on; /* requests to stop that it was told of */
  bool spoke;    /* it has written something */
  double begun, touched;
};

static void write_fully(int fd, const char *bytes, size_t count) {
  while (count) {
    const ssize_t wrote = write(fd, bytes, count);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return; /* a closed terminal or a full disk must not stop the program */
    bytes += wrote;
    count -= (size_t)wrote;
  }
}

enum copied { COPIED, NOTHING_YET, ENDED };

static enum copied copy_output(struct watch *watch) {
  char block[COPY_BYTES];
  const ssize_t got = read(watch->output, block, sizeof block);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return NOTHING_YET;
  if (got <= 0) return ENDED;
  watch->spoke = true;
  write_fully(STDOUT_FILENO, block, (size_t)got);
  write_fully(watch->log, block, (size_t)got);
  return COPIED;
}

static bool is_starting(const struct watch *watch) {
  return !watch->spoke && now_seconds() - watch->begun < watch->plan->start_seconds;
}

static void pass_on_requests(struct watch *watch) {
  const int requests = (int)stop_requests;
  if (requests == watch->passed_on || (requests == 1 && is_starting(watch))) return;
  watch->passed_on = requests;
  if (requests == 1)
    kill(watch->child, watch->plan->stop_signal);
  else
    kill(-watch->child, requests == 2 ? SIGTERM : SIGKILL);
}

/* Waits up to a second for output or a signal. False when the output has ended. */
static bool attend(struct watch *watch) {
  sigset_t none;
  sigemptyset(&none);
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(watch->output, &readable);
  const struct timespec second = {.tv_sec = 1};
  const int ready = pselect(watch->output + 1, &readable, NULL, NULL, &second, &none);
  pass_on_requests(watch);
  if (watch->plan->lease && now_seconds() - watch->touched > LEASE_TOUCH_SECONDS) {
    lease_touch(watch->plan->lease);
    watch->touched = now_seconds();
  }
  return ready <= 0 || copy_output(watch) != ENDED;
}

static void rest(void) {
  nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* Copies what is left after the end. Descendants that outlive the program may keep the output
 * open: they get a moment. */
static void drain(struct watch *watch) {
  fcntl(watch->output, F_SETFL, O_NONBLOCK);
  for (int round = 0; round < DRAIN_ROUNDS; rest(), round++) {
    enum copied copied = COPIED;
    while (copied == COPIED) copied = copy_output(watch);
    if (copied == ENDED) return;
  }
}

static int wait_for_end(struct watch *watch) {
  int state = 0;
  bool open = true;
  while (waitpid(watch->child, &state, WNOHANG) == 0) {
    if (open) open = attend(watch);
    if (!open) rest(), pass_on_requests(watch);
  }
  if (open) drain(watch);
  return WIFSIGNALED(state) ? SIGNALLED + WTERMSIG(state) : WEXITSTATUS(state);
}

/* The status behind an exit code of a stage, or of the launcher that started it. */
static enum status status_of(int code) {
  if (code == 0) return STATUS_OK;
  if (process_stop_requested()) return STATUS_STOPPED;
  const bool launcher_failed = code == 1 || code == 126 || code == NOT_FOUND;
  if (launcher_failed || code == SIGNALLED + SIGKILL) return STATUS_ENVIRONMENT;
  return error_status_of_exit(code);
}

static enum status open_log(int *log, const struct process_plan *plan) {
  *log = open(plan->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  CHECK(*log >= 0, STATUS_WRITE, "cannot write '%s': %s", plan->log, strerror(errno));
  char date[32];
  const time_t now = time(NULL);
  struct tm parts;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  dprintf(*log, "=== %s", date);
  for (size_t i = 0; plan->words[i]; i++) dprintf(*log, " %s", plan->words[i]);
  dprintf(*log, "\n");
  return STATUS_OK;
}

static enum status start(struct watch *watch) {
  int ends[2];
  CHECK(pipe(ends) == 0, STATUS_ENVIRONMENT, "cannot make a pipe: %s", strerror(errno));
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  const pid_t parent = getpid();
  fflush(NULL);
  watch->child = fork();
  if (watch->child == 0) become(watch->plan, ends[1], parent);
  const int cause = errno;
  close(ends[1]);
  watch->output = ends[0];
  if (watch->child < 0) close(ends[0]);
  CHECK(watch->child > 0, STATUS_ENVIRONMENT, "cannot start a process: %s", strerror(cause));
  setpgid(watch->child, watch->child); /* here too: whichever comes first */
  return STATUS_OK;
}

static void join_lease(const struct watch *watch) {
  char holder[LEASE_HOLDER_BYTES];
  if (!watch->plan->lease) return;
  lease_describe(holder, watch->child);
  if (lease_join(watch->plan->lease, holder) != STATUS_OK) error_clear();
}

enum status process_run(struct process_outcome *outcome, const struct process_plan *plan) {
  const double now = now_seconds();
  struct watch watch = {.plan = plan, .begun = now, .touched = now};
  *outcome = (struct process_outcome){0};
  TRY(open_log(&watch.log, plan));
  const enum status status = start(&watch);
  if (status == STATUS_OK) {
    join_lease(&watch);
    outcome->exit_code = wait_for_end(&watch);
    close(watch.output);
  }
  close(watch.log);
  TRY(status);
  outcome->seconds = now_seconds() - watch.begun;
  outcome->status = status_of(outcome->exit_code);
  return STATUS_OK;
}

enum status process_become(char *const *words) {
  fflush(NULL);
  execvp(words[0], words);
  FAIL(STATUS_ENVIRONMENT, "cannot start '%s': %s", words[0], strerror(errno));
}
