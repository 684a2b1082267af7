#include "stages/tokenize/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 256 << 10 };

struct plain {
  const char *path;
  int fd;
};

static enum status read_at(const struct plain *plain, char *bytes, size_t capacity, uint64_t offset,
                           size_t *got) {
  ssize_t count;
  do count = pread(plain->fd, bytes, capacity, (off_t)offset);
  while (count < 0 && errno == EINTR);
  CHECK(count >= 0, STATUS_ENVIRONMENT, "cannot read '%s' at byte %llu: %s", plain->path,
        (unsigned long long)offset, strerror(errno));
  *got = (size_t)count;
  return STATUS_OK;
}

/* The first line that begins at or behind `at`; the end of the file when there is none. */
static enum status find_line(const struct plain *plain, uint64_t at, uint64_t *line) {
  char block[4096];
  *line = at;
  if (at == 0) return STATUS_OK;
  for (uint64_t offset = at - 1;;) {
    size_t got = 0;
    TRY(read_at(plain, block, sizeof block, offset, &got));
    const char *stop = got ? memchr(block, '\n', got) : NULL;
    *line = offset + (stop ? (uint64_t)(stop - block) + 1 : got);
    if (stop || !got) return STATUS_OK;
    offset += got;
  }
}

/* Whether the line before the one at `line` holds nothing but white space (or there is none). */
static enum status follows_blank(const struct plain *plain, uint64_t line, bool *blank) {
  *blank = true;
  for (uint64_t at = line > 0 ? line - 1 : 0; at > 0; at--) {
    char byte;
    size_t got = 0;
    TRY(read_at(plain, &byte, 1, at - 1, &got));
    if (!got || byte == '\n') return STATUS_OK;
    *blank = byte == ' ' || (byte >= '\t' && byte <= '\r');
    if (!*blank) return STATUS_OK;
  }
  return STATUS_OK;
}

/* The first place in [begin, end) where a document can begin (else any place behind `end`): skips
 * the rest of one that began before. */
static enum status find_begin(const struct plain *plain, const struct splitter *splitter,
                              uint64_t begin, uint64_t *found) {
  bool blank = true;
  const bool by_record = boundary_needs_blank_line(splitter->boundary);
  TRY(find_line(plain, begin, found));
  if (by_record) TRY(follows_blank(plain, *found, &blank));
  while (!blank && *found < splitter->limit) {
    const uint64_t before = *found;
    TRY(find_line(plain, before + 1, found));
    if (*found <= before) return STATUS_OK; /* the end of the file */
    TRY(follows_blank(plain, *found, &blank));
  }
  return STATUS_OK;
}

static enum status feed(const struct plain *plain, uint64_t begin, struct splitter *splitter) {
  char block[BLOCK];
  size_t got = 0;
  uint64_t offset = begin;
  if (boundary_divides(splitter->boundary)) TRY(find_begin(plain, splitter, begin, &offset));
  splitter->offset = offset;
  for (; offset < splitter->limit || !splitter_is_idle(splitter); offset += got) {
    TRY(read_at(plain, block, sizeof block, offset, &got));
    if (!got || splitter->done) break;
    TRY(splitter_feed(splitter, block, got));
  }
  return splitter_finish(splitter);
}

enum status plain_read(const char *path, uint64_t begin, uint64_t end, struct splitter *splitter) {
  struct plain plain = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
  CHECK(plain.fd >= 0, errno == ENOENT ? STATUS_MISMATCH : STATUS_ENVIRONMENT,
        "cannot open '%s': %s", path, strerror(errno));
  splitter->name = path;
  splitter->limit = end;
  splitter->done = false;
  const enum status status = feed(&plain, begin, splitter);
  close(plain.fd);
  TRY(status);
  return STATUS_OK;
}
