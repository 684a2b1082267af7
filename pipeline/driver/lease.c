#define _DEFAULT_SOURCE
#include "pipeline/driver/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/file.h"

struct holder {
  char host[128], boot[64];
  long pid;
  unsigned long long start;
};

enum status lease_locate(struct lease *lease, const char *run_folder, const char *node) {
  *lease = (struct lease){0};
  CHECK(snprintf(lease->path, sizeof lease->path, "%s/%s.lease", run_folder, node) < PATH_MAX,
        STATUS_MISMATCH, "path too long: '%s/%s'", run_folder, node);
  return STATUS_OK;
}

/* The first line of a small file; "-" when it cannot be read. */
static void first_line(char *out, size_t bytes, const char *path) {
  snprintf(out, bytes, "-");
  FILE *file = fopen(path, "r");
  if (!file) return;
  if (fgets(out, (int)bytes, file)) out[strcspn(out, "\n")] = '\0';
  fclose(file);
}

/* Start time in clock ticks since boot, from /proc/PID/stat; 0 when there is no such process or it
 * is a zombie. */
static unsigned long long start_of(long pid) {
  char path[64], line[1024], state;
  unsigned long long start = 0;
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  first_line(line, sizeof line, path);
  const char *rest = strrchr(line, ')'); /* the name before it may hold anything */
  if (!rest) return 0;
  const int got = sscanf(rest + 1,
                         " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                         "%*d %llu",
                         &state, &start);
  return got == 2 && state != 'Z' && state != 'X' ? start : 0;
}

static struct holder describe(long pid) {
  struct holder holder = {.pid = pid, .start = start_of(pid)};
  if (gethostname(holder.host, sizeof holder.host - 1) != 0) snprintf(holder.host, 2, "-");
  first_line(holder.boot, sizeof holder.boot, "/proc/sys/kernel/random/boot_id");
  return holder;
}

void lease_describe(char holder[LEASE_HOLDER_BYTES], pid_t pid) {
  const struct holder self = describe((long)pid);
  snprintf(holder, LEASE_HOLDER_BYTES, "%s %s %ld %llu", self.host, self.boot, self.pid,
           self.start);
}

static bool is_here(const struct holder *holder) {
  const struct holder self = describe((long)getpid());
  return strcmp(self.host, holder->host) == 0 && strcmp(self.boot, holder->boot) == 0;
}

/* Seconds since the lease was touched, by the clock of its file system. */
static double age_of(const struct lease *lease) {
  char probe[PATH_MAX + 32];
  struct stat mine, now;
  snprintf(probe, sizeof probe, "%s.%ld.now", lease->path, (long)getpid());
  const int fd = open(probe, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return 0;
  const bool good = fstat(fd, &now) == 0 && stat(lease->path, &mine) == 0;
  close(fd);
  unlink(probe);
  return good ? (double)(now.st_mtim.tv_sec - mine.st_mtim.tv_sec) : 0;
}

static bool is_alive(const struct lease *lease, const struct holder *holder) {
  if (!is_here(holder)) {
    const struct holder self = describe((long)getpid());
    if (strcmp(self.host, holder->host) == 0) return false; /* this machine was started anew */
    return age_of(lease) < LEASE_LIFE_SECONDS;
  }
  return holder->start && start_of(holder->pid) == holder->start;
}

static enum lease_state judge(const struct lease *lease, const char *lines,
                              char out[LEASE_HOLDER_BYTES]) {
  struct holder holder;
  bool first = true;
  for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
    if (sscanf(line, "%127s %63s %ld %llu", holder.host, holder.boot, &holder.pid, &holder.start) !=
        4)
      continue; /* a line cut short by a crash */
    const bool alive = is_alive(lease, &holder);
    if (out && (alive || first))
      snprintf(out, LEASE_HOLDER_BYTES, "process %ld on %s", holder.pid, holder.host);
    if (alive) return LEASE_ALIVE;
    first = false;
  }
  return LEASE_DEAD;
}

static enum lease_state look(const struct lease *lease, struct text *lines,
                             char holder[LEASE_HOLDER_BYTES]) {
  if (!file_exists(lease->path) || file_read(lines, lease->path) != STATUS_OK) {
    error_clear();
    return LEASE_FREE;
  }
  return judge(lease, lines->bytes, holder);
}

enum lease_state lease_look(const struct lease *lease, char holder[LEASE_HOLDER_BYTES]) {
  struct text lines = {0};
  const enum lease_state state = look(lease, &lines, holder);
  text_free(&lines);
  return state;
}

/* Moves a dead lease away, unless it became another one since it was read. */
static void bury(const struct lease *lease, const struct text *dead) {
  char grave[PATH_MAX + 32];
  struct text now = {0};
  snprintf(grave, sizeof grave, "%s.%ld.dead", lease->path, (long)getpid());
  if (rename(lease->path, grave) != 0) return; /* somebody else was faster */
  const bool same = file_read(&now, grave) == STATUS_OK && now.length == dead->length &&
                    memcmp(now.bytes, dead->bytes, now.length) == 0;
  text_free(&now);
  if (!same && link(grave, lease->path) != 0) error_clear();
  unlink(grave);
}

static enum status create(struct lease *lease) {
  char fresh[PATH_MAX + 32], line[LEASE_HOLDER_BYTES + 1];
  lease_describe(line, getpid());
  strncat(line, "\n", 2);
  snprintf(fresh, sizeof fresh, "%s.%ld.new", lease->path, (long)getpid());
  TRY(file_write(fresh, line, strlen(line)));
  const int failed = link(fresh, lease->path);
  const int cause = errno;
  unlink(fresh);
  lease->held = failed == 0;
  CHECK(lease->held || cause == EEXIST, STATUS_WRITE, "cannot make the lease '%s': %s", lease->path,
        strerror(cause));
  return STATUS_OK;
}

enum status lease_take(struct lease *lease, bool *taken) {
  *taken = false;
  struct text lines = {0};
  const enum lease_state state = look(lease, &lines, NULL);
  if (state == LEASE_DEAD) bury(lease, &lines);
  text_free(&lines);
  if (state == LEASE_ALIVE) return STATUS_OK;
  TRY(create(lease));
  *taken = lease->held;
  return STATUS_OK;
}

enum status lease_join(const struct lease *lease, const char *holder) {
  char line[LEASE_HOLDER_BYTES + 1];
  snprintf(line, sizeof line, "%s\n", holder);
  const int fd = open(lease->path, O_WRONLY | O_APPEND | O_CLOEXEC);
  CHECK(fd >= 0, STATUS_WRITE, "cannot open the lease '%s': %s", lease->path, strerror(errno));
  const ssize_t wrote = write(fd, line, strlen(line));
  const int cause = errno;
  close(fd);
  CHECK(wrote == (ssize_t)strlen(line), STATUS_WRITE, "cannot write the lease '%s': %s",
        lease->path, strerror(cause));
  return STATUS_OK;
}

void lease_touch(const struct lease *lease) {
  (void)utimensat(AT_FDCWD, lease->path, NULL, 0);
}

void lease_release(struct lease *lease) {
  if (lease->held) unlink(lease->path);
  lease->held = false;
}
