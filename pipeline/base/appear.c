#include "pipeline/base/appear.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS_PER_SECOND = 20, NANOSECONDS = 1000000000 };

/* To open a folder makes a network file system ask whether it has changed. */
static void read_folder_of(const char *path) {
  char part[PATH_MAX];
  if (snprintf(part, sizeof part, "%s", path) >= PATH_MAX) return;
  DIR *folder = opendir(dirname(part));
  if (!folder) return;
  while (readdir(folder)) continue;
  closedir(folder);
}

int appear_open(const char *path, int flags) {
  int fd = open(path, flags);
  for (int look = 0; look < APPEAR_SECONDS * LOOKS_PER_SECOND; look++) {
    if (fd >= 0 || (errno != ENOENT && errno != ESTALE)) return fd;
    nanosleep(&(struct timespec){.tv_nsec = NANOSECONDS / LOOKS_PER_SECOND}, NULL);
    read_folder_of(path);
    fd = open(path, flags);
  }
  return fd;
}

FILE *appear_stream(const char *path) {
  const int fd = appear_open(path, O_RDONLY | O_CLOEXEC);
  FILE *stream = fd < 0 ? NULL : fdopen(fd, "rb");
  if (fd >= 0 && !stream) close(fd);
  return stream;
}
