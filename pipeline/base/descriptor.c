#include "pipeline/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/appear.h"

enum { LARGEST_CALL = 1 << 30 }; /* one call moves at most this much */

enum status descriptor_open(int *fd, const char *path) {
  *fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(*fd >= 0 || errno != EMFILE, STATUS_ENVIRONMENT,
        "cannot open '%s': too many open files; raise the limit (ulimit -n)", path);
  CHECK(*fd >= 0, errno == ENOENT ? STATUS_MISMATCH : STATUS_ENVIRONMENT, "cannot open '%s': %s",
        path, strerror(errno));
  return STATUS_OK;
}

enum status descriptor_create(int *fd, const char *path) {
  *fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  CHECK(*fd >= 0, STATUS_WRITE, "cannot create '%s': %s", path, strerror(errno));
  return STATUS_OK;
}

enum status descriptor_reopen(int *fd, const char *path) {
  *fd = appear_open(path, O_RDWR | O_CLOEXEC);
  CHECK(*fd >= 0, STATUS_WRITE, "cannot open '%s' for writing: %s", path, strerror(errno));
  return STATUS_OK;
}

enum status descriptor_size(uint64_t *bytes, int fd, const char *path) {
  struct stat info;
  CHECK(fstat(fd, &info) == 0, STATUS_ENVIRONMENT, "cannot look at '%s': %s", path,
        strerror(errno));
  *bytes = (uint64_t)info.st_size;
  return STATUS_OK;
}

enum status descriptor_read(int fd, void *out, uint64_t offset, uint64_t bytes, const char *path) {
  unsigned char *to = out;
  while (bytes) {
    const size_t want = bytes < LARGEST_CALL ? (size_t)bytes : LARGEST_CALL;
    const ssize_t got = pread(fd, to, want, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got >= 0, STATUS_ENVIRONMENT, "cannot read '%s' at byte %llu: %s", path,
          (unsigned long long)offset, strerror(errno));
    CHECK(got > 0, STATUS_DAMAGED, "'%s' is truncated at byte %llu: %llu more bytes were expected",
          path, (unsigned long long)offset, (unsigned long long)bytes);
    to += got;
    offset += (uint64_t)got;
    bytes -= (uint64_t)got;
  }
  return STATUS_OK;
}

enum status descriptor_write(int fd, const void *data, uint64_t offset, uint64_t bytes,
                             const char *path) {
  const unsigned char *from = data;
  while (bytes) {
    const size_t want = bytes < LARGEST_CALL ? (size_t)bytes : LARGEST_CALL;
    const ssize_t wrote = pwrite(fd, from, want, (off_t)offset);
    if (wrote < 0 && errno == EINTR) continue;
    CHECK(wrote > 0, STATUS_WRITE, "cannot write '%s' at byte %llu: %s", path,
          (unsigned long long)offset, wrote < 0 ? strerror(errno) : "nothing was taken");
    from += wrote;
    offset += (uint64_t)wrote;
    bytes -= (uint64_t)wrote;
  }
  return STATUS_OK;
}

enum status descriptor_sync(int fd, const char *path) {
  CHECK(fsync(fd) == 0, STATUS_WRITE, "cannot flush '%s': %s", path, strerror(errno));
  return STATUS_OK;
}

enum status descriptor_finish(int *fd, const char *path) {
  const enum status status = descriptor_sync(*fd, path);
  const int closed = close(*fd);
  *fd = -1;
  TRY(status);
  CHECK(closed == 0, STATUS_WRITE, "cannot close '%s': %s", path, strerror(errno));
  return STATUS_OK;
}
