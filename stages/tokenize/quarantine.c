#include "stages/tokenize/quarantine.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"

enum { HELD_BYTES = 1 << 20 };

static enum status name_list(char path[PATH_MAX], const char *folder, int64_t unit,
                             const char *ending) {
  const int length =
      snprintf(path, PATH_MAX, "%s/parts/quarantine-%08lld%s", folder, (long long)unit, ending);
  CHECK(length < PATH_MAX, STATUS_WRITE, "path too long: '%s/parts'", folder);
  return STATUS_OK;
}

static enum status append(const char *path, const char *mode, const struct text *bytes) {
  FILE *file = fopen(path, mode);
  CHECK(file, STATUS_WRITE, "cannot create '%s': %s", path, strerror(errno));
  const size_t wrote = fwrite(bytes->bytes, 1, bytes->length, file);
  CHECK(fclose(file) == 0 && wrote == bytes->length, STATUS_WRITE, "cannot write '%s': %s", path,
        strerror(errno));
  return STATUS_OK;
}

static enum status write_held(struct quarantine *list) {
  char path[PATH_MAX];
  TRY(name_list(path, list->folder, list->unit, ".tmp"));
  TRY(append(path, list->begun ? "ab" : "wb", &list->lines));
  list->begun = true;
  text_clear(&list->lines);
  return STATUS_OK;
}

/* Names and reasons may hold bytes that are not UTF-8. */
static json_t *readable(const char *string) {
  struct text text = {0};
  json_t *json = NULL;
  if (text_add_readable(&text, string, strlen(string)) == STATUS_OK)
    json = json_string(text.bytes ? text.bytes : "");
  text_free(&text);
  return json;
}

static enum status add_line(struct text *lines, const struct refusal *refusal) {
  json_t *json = json_pack(
      "{s:o, s:I, s:s, s:o}", "name", readable(refusal->name), "byte", (json_int_t)refusal->offset,
      "what", refusal->document ? "document" : "entry", "reason", readable(refusal->reason));
  char *line = json ? json_dumps(json, 0) : NULL;
  json_decref(json);
  CHECK(line, STATUS_ENVIRONMENT, "out of memory: a line of " QUARANTINE_NAME);
  const enum status status = text_format(lines, "%s\n", line);
  free(line);
  return status;
}

enum status quarantine_add(struct quarantine *list, const struct refusal *refusal) {
  TRY(add_line(&list->lines, refusal));
  return list->lines.length < HELD_BYTES ? STATUS_OK : write_held(list);
}

enum status quarantine_end(struct quarantine *list) {
  char path[PATH_MAX], temporary[PATH_MAX];
  if (list->lines.length) TRY(write_held(list));
  if (!list->begun) return STATUS_OK;
  TRY(name_list(temporary, list->folder, list->unit, ".tmp"));
  TRY(name_list(path, list->folder, list->unit, ""));
  CHECK(rename(temporary, path) == 0, STATUS_WRITE, "cannot rename '%s': %s", temporary,
        strerror(errno));
  return STATUS_OK;
}

void quarantine_free(struct quarantine *list) {
  text_free(&list->lines);
}

static enum status copy(FILE *to, const char *path) {
  struct text bytes = {0};
  const enum status status = file_read(&bytes, path);
  const bool wrote =
      status == STATUS_OK && fwrite(bytes.bytes, 1, bytes.length, to) == bytes.length;
  text_free(&bytes);
  TRY(status);
  CHECK(wrote, STATUS_WRITE, "cannot write " QUARANTINE_NAME ": %s", strerror(errno));
  return STATUS_OK;
}

static enum status copy_all(FILE *to, const char *folder, int64_t units, bool *any) {
  char path[PATH_MAX];
  for (int64_t unit = 0; unit < units; unit++) {
    TRY(name_list(path, folder, unit, ""));
    if (!file_exists(path)) continue;
    TRY(copy(to, path));
    *any = true;
  }
  return STATUS_OK;
}

enum status quarantine_collect(const char *folder, int64_t units, bool *any) {
  char path[PATH_MAX];
  CHECK(snprintf(path, sizeof path, "%s/" QUARANTINE_NAME, folder) < PATH_MAX, STATUS_WRITE,
        "path too long: '%s'", folder);
  *any = false;
  FILE *to = fopen(path, "wb");
  CHECK(to, STATUS_WRITE, "cannot create '%s': %s", path, strerror(errno));
  const enum status status = copy_all(to, folder, units, any);
  const bool closed = fclose(to) == 0;
  TRY(status);
  CHECK(closed, STATUS_WRITE, "cannot write '%s': %s", path, strerror(errno));
  return *any ? STATUS_OK : file_remove(path);
}
