#define _XOPEN_SOURCE 700
#include "pipeline/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BLOCK = 1 << 16, OPEN_FOLDERS = 16 };

enum status file_read(struct text *text, const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file, errno == ENOENT ? STATUS_MISMATCH : STATUS_ENVIRONMENT, "cannot open '%s': %s", path,
        strerror(errno));
  char block[READ_BLOCK];
  enum status status = STATUS_OK;
  size_t got;
  while (status == STATUS_OK && (got = fread(block, 1, sizeof block, file)) > 0)
    status = text_add_bytes(text, block, got);
  const bool bad = ferror(file);
  fclose(file);
  TRY(status);
  CHECK(!bad, STATUS_ENVIRONMENT, "cannot read '%s': %s", path, strerror(errno));
  return text_add_bytes(text, "", 0);
}

static enum status write_all(int fd, const char *path, const char *bytes, size_t count) {
  while (count) {
    const ssize_t wrote = write(fd, bytes, count);
    if (wrote < 0 && errno == EINTR) continue;
    CHECK(wrote > 0, STATUS_WRITE, "cannot write '%s': %s", path, strerror(errno));
    bytes += wrote;
    count -= (size_t)wrote;
  }
  CHECK(fsync(fd) == 0, STATUS_WRITE, "cannot flush '%s': %s", path, strerror(errno));
  return STATUS_OK;
}

enum status file_write(const char *path, const void *bytes, size_t count) {
  char temporary[PATH_MAX];
  const int length = snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
  CHECK(length < PATH_MAX, STATUS_WRITE, "path too long: '%s'", path);
  const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  CHECK(fd >= 0, STATUS_WRITE, "cannot create '%s': %s", temporary, strerror(errno));
  enum status status = write_all(fd, temporary, bytes, count);
  close(fd);
  if (status == STATUS_OK) status = file_rename(temporary, path);
  if (status != STATUS_OK) unlink(temporary);
  TRY(status);
  return STATUS_OK;
}

static enum status take_room(const char *path, uint64_t bytes) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  CHECK(fd >= 0, STATUS_WRITE, "cannot create '%s': %s", path, strerror(errno));
  const int cause = posix_fallocate(fd, 0, (off_t)bytes);
  close(fd);
  CHECK(cause == 0, STATUS_WRITE, "cannot take room for '%s': %s", path, strerror(cause));
  return STATUS_OK;
}

enum status file_reserve(const char *path, uint64_t bytes) {
  struct stat info;
  if (stat(path, &info) == 0 && (uint64_t)info.st_size == bytes) return STATUS_OK;
  const enum status status = bytes > 0 ? take_room(path, bytes) : STATUS_OK;
  if (status != STATUS_OK) unlink(path);
  return status;
}

/* Through a descriptor, since what is known of a name may be old (R-FS-3); one that may not be read
 * may be passed. */
static bool is_folder(const char *path) {
  struct stat info;
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool found = fd >= 0 ? fstat(fd, &info) == 0 : errno == EACCES && stat(path, &info) == 0;
  if (fd >= 0) close(fd);
  return found && S_ISDIR(info.st_mode);
}

static enum status make_one(const char *path) {
  if (mkdir(path, 0777) == 0) return STATUS_OK;
  const int cause = errno;
  CHECK(cause == EEXIST, STATUS_WRITE, "cannot make folder '%s': %s", path, strerror(cause));
  CHECK(is_folder(path), STATUS_WRITE, "cannot make folder '%s': %s", path,
        errno == ENOTDIR ? "a file is in the way" : strerror(errno));
  return STATUS_OK;
}

enum status file_make_folder(const char *path) {
  char part[PATH_MAX];
  CHECK(snprintf(part, sizeof part, "%s", path) < PATH_MAX, STATUS_WRITE, "path too long: '%s'",
        path);
  for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    TRY(make_one(part));
    *slash = '/';
  }
  return make_one(part);
}

enum status file_sync_folder(const char *path) {
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CHECK(fd >= 0, STATUS_WRITE, "cannot open folder '%s': %s", path, strerror(errno));
  const int failed = fsync(fd) != 0 && errno != EINVAL; /* some file systems cannot, by design */
  const int cause = errno;
  close(fd);
  CHECK(!failed, STATUS_WRITE, "cannot flush folder '%s': %s", path, strerror(cause));
  return STATUS_OK;
}

enum status file_rename(const char *from, const char *to) {
  char folder[PATH_MAX];
  CHECK(rename(from, to) == 0, STATUS_WRITE, "cannot rename '%s' to '%s': %s", from, to,
        strerror(errno));
  CHECK(snprintf(folder, sizeof folder, "%s", to) < PATH_MAX, STATUS_WRITE, "path too long: '%s'",
        to);
  return file_sync_folder(dirname(folder));
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

enum status file_remove(const char *path) {
  if (nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) == 0) return STATUS_OK;
  CHECK(errno == ENOENT, STATUS_WRITE, "cannot remove '%s': %s", path, strerror(errno));
  return STATUS_OK;
}

/* NAME.DIGITS.tmp, as file_write names its temporary files. */
static bool is_temporary(const char *path) {
  const size_t length = strlen(path), ending = sizeof ".tmp" - 1;
  if (length <= ending || strcmp(path + length - ending, ".tmp") != 0) return false;
  size_t first = length - ending;
  while (first > 0 && path[first - 1] >= '0' && path[first - 1] <= '9') first--;
  return first > 1 && first < length - ending && path[first - 1] == '.';
}

static int sweep_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)where;
  return kind == FTW_F && is_temporary(path) ? unlink(path) : 0;
}

enum status file_sweep(const char *path) {
  if (nftw(path, sweep_entry, OPEN_FOLDERS, FTW_PHYS) == 0) return STATUS_OK;
  CHECK(errno == ENOENT, STATUS_WRITE, "cannot tidy '%s': %s", path, strerror(errno));
  return STATUS_OK;
}

bool file_exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

enum status file_size(uint64_t *bytes, const char *path) {
  struct stat info;
  CHECK(stat(path, &info) == 0, errno == ENOENT ? STATUS_MISMATCH : STATUS_ENVIRONMENT,
        "cannot look at '%s': %s", path, strerror(errno));
  *bytes = (uint64_t)info.st_size;
  return STATUS_OK;
}
