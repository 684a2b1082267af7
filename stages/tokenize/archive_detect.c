#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "stages/tokenize/archive.h"
#include "stages/tokenize/archive_handle.h"
#include "stages/tokenize/gunzip.h"

enum { HEAD = 4096, BLOCK = 64 << 10 };

static enum status read_head(char head[HEAD], size_t *count, const char *path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0, STATUS_ENVIRONMENT, "cannot open '%s': %s", path, strerror(errno));
  const ssize_t got = read(fd, head, HEAD);
  const int cause = errno;
  close(fd);
  CHECK(got >= 0, STATUS_ENVIRONMENT, "cannot read '%s': %s", path, strerror(cause));
  *count = (size_t)got;
  return STATUS_OK;
}

/* A file whose first header is broken counts as packed: reading it will say what is wrong. */
static enum status probe(bool *packed, const char *path) {
  struct archive_locale scope;
  TRY(archive_locale_enter(&scope));
  struct archive *archive = archive_handle_new();
  struct archive_entry *entry;
  if (archive && archive_read_open_filename(archive, path, BLOCK) == ARCHIVE_OK)
    archive_read_next_header(archive, &entry);
  *packed = archive && archive_handle_is_packed(archive);
  archive_read_free(archive);
  archive_locale_leave(&scope);
  CHECK(archive, STATUS_ENVIRONMENT, "out of memory: an archive reader");
  return STATUS_OK;
}

enum status archive_detect(bool *packed, const char *path) {
  char head[HEAD];
  size_t count = 0;
  TRY(read_head(head, &count, path));
  *packed = gunzip_is_gzip(head, count);
  if (*packed || archive_handle_is_text(head, count)) return STATUS_OK;
  TRY(probe(packed, path));
  CHECK(*packed || !archive_handle_is_binary(head, count), STATUS_DAMAGED,
        "'%s' is neither text (it has zero bytes or begins with a control character) nor an "
        "archive or compression that libarchive "
        "knows",
        path);
  return STATUS_OK;
}
