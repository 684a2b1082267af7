#include "monitoring/metric_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"

static int64_t step_of(const char *line) {
  const char *key = strstr(line, "\"step\":");
  return key ? strtoll(key + 7, NULL, 10) : INT64_MAX;
}

/* Length of the part of `bytes` that stays: whole lines up to the first of a later step. */
static size_t kept_bytes(char *bytes, int64_t step) {
  size_t kept = 0;
  for (char *end; bytes && (end = strchr(bytes + kept, '\n'));) {
    *end = '\0';
    if (step_of(bytes + kept) > step) break;
    kept = (size_t)(end + 1 - bytes);
  }
  return kept;
}

static enum status find_kept(off_t *kept, const char *path, int64_t step) {
  *kept = 0;
  if (step < 0 || !file_exists(path)) return STATUS_OK;
  struct text bytes = {0};
  const enum status status = file_read(&bytes, path);
  if (status == STATUS_OK) *kept = (off_t)kept_bytes(bytes.bytes, step);
  text_free(&bytes);
  return status;
}

enum status metric_file_open(struct metric_file *file, const char *path, int64_t step) {
  *file = (struct metric_file){.descriptor = -1};
  if (!path) return STATUS_OK;
  off_t kept;
  TRY(find_kept(&kept, path, step));
  file->descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  CHECK(file->descriptor >= 0, STATUS_WRITE, "%s: cannot open for writing (%s)", path,
        strerror(errno));
  const bool cut =
      ftruncate(file->descriptor, kept) == 0 && lseek(file->descriptor, kept, SEEK_SET) == kept;
  file->path = strdup(path);
  if (cut && file->path) return STATUS_OK;
  metric_file_close(file);
  FAIL(STATUS_WRITE, "%s: cannot cut to %lld bytes (%s)", path, (long long)kept, strerror(errno));
}

void metric_file_close(struct metric_file *file) {
  if (file->path && file->descriptor >= 0) close(file->descriptor);
  free(file->path);
  text_free(&file->line);
  text_free(&file->waiting);
  *file = (struct metric_file){.descriptor = -1};
}

static void add(struct metric_file *file, enum status status) {
  if (file->status == STATUS_OK) file->status = status;
}

static void add_key(struct metric_file *file, const char *key) {
  const size_t length = file->line.length;
  const bool first = length && file->line.bytes[length - 1] == '{';
  add(file, text_format(&file->line, "%s\"%s\":", first ? "" : ",", key));
}

void metric_file_begin(struct metric_file *file, const char *event, int64_t step) {
  text_clear(&file->line);
  file->status = text_add(&file->line, "{");
  metric_file_text(file, "event", event);
  metric_file_integer(file, "step", step);
}

void metric_file_integer(struct metric_file *file, const char *key, int64_t value) {
  add_key(file, key);
  add(file, text_format(&file->line, "%lld", (long long)value));
}

void metric_file_real(struct metric_file *file, const char *key, double value) {
  if (!isfinite(value)) {
    metric_file_text(file, key, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  add_key(file, key);
  add(file, text_format(&file->line, "%.17g", value));
}

void metric_file_text(struct metric_file *file, const char *key, const char *value) {
  add_key(file, key);
  add(file, text_add(&file->line, "\""));
  for (const char *c = value; *c; c++) {
    const unsigned char byte = (unsigned char)*c;
    if (byte == '"' || byte == '\\') add(file, text_format(&file->line, "\\%c", *c));
    if (byte < 0x20) add(file, text_format(&file->line, "\\u%04x", byte));
    if (byte >= 0x20 && byte != '"' && byte != '\\') add(file, text_add_bytes(&file->line, c, 1));
  }
  add(file, text_add(&file->line, "\""));
}

void metric_file_open_group(struct metric_file *file, const char *key) {
  add_key(file, key);
  add(file, text_add(&file->line, "{"));
}

void metric_file_close_group(struct metric_file *file) {
  add(file, text_add(&file->line, "}"));
}

static enum status write_waiting(struct metric_file *file) {
  const struct text *waiting = &file->waiting;
  while (file->written < waiting->length) {
    const ssize_t count =
        write(file->descriptor, waiting->bytes + file->written, waiting->length - file->written);
    if (count < 0 && errno == EINTR) continue;
    CHECK(count > 0, STATUS_WRITE, "%s: cannot append a record (%s)", file->path, strerror(errno));
    file->written += (size_t)count;
  }
  text_clear(&file->waiting);
  file->written = 0;
  return STATUS_OK;
}

enum status metric_file_end(struct metric_file *file) {
  add(file, text_add(&file->line, "}\n"));
  if (file->descriptor >= 0)
    add(file, text_add_bytes(&file->waiting, file->line.bytes, file->line.length));
  CHECK(file->status == STATUS_OK, STATUS_ENVIRONMENT, "metrics: no memory for a record");
  if (file->descriptor < 0) return STATUS_OK;
  const enum status status = write_waiting(file);
  if (status == STATUS_OK || file->waiting.length >= METRIC_WAITING_BYTES) return status;
  error_clear();
  return STATUS_OK;
}

enum status metric_file_sync(struct metric_file *file) {
  if (file->descriptor < 0) return STATUS_OK;
  TRY(write_waiting(file));
  CHECK(fsync(file->descriptor) == 0, STATUS_WRITE, "%s: cannot flush (%s)", file->path,
        strerror(errno));
  return STATUS_OK;
}
