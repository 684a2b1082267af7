#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/driver/process.h"

enum { NOT_FOUND = 127 };

static enum status read_all(struct text *output, int fd) {
  char block[1024];
  for (;;) {
    const ssize_t got = read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got >= 0, STATUS_ENVIRONMENT, "cannot read a program's output: %s", strerror(errno));
    if (got == 0) return STATUS_OK;
    TRY(text_add_bytes(output, block, (size_t)got));
  }
}

static int wait_for(pid_t child) {
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

enum status process_capture(struct text *output, char *const *words) {
  int ends[2];
  CHECK(pipe(ends) == 0, STATUS_ENVIRONMENT, "cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execvp(words[0], words);
    _exit(NOT_FOUND);
  }
  const int cause = errno;
  close(ends[1]);
  const enum status status = child > 0 ? read_all(output, ends[0]) : STATUS_OK;
  close(ends[0]);
  CHECK(child > 0, STATUS_ENVIRONMENT, "cannot start a process: %s", strerror(cause));
  const int code = wait_for(child);
  TRY(status);
  CHECK(code != NOT_FOUND, STATUS_ENVIRONMENT, "cannot start '%s': is it installed?", words[0]);
  CHECK(code == 0, STATUS_ENVIRONMENT, "'%s' failed with exit code %d", words[0], code);
  return STATUS_OK;
}
