#include "pipeline/driver/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/file.h"

/* Appends one object as one write, so that lines of several drivers do not mix. Takes over `event`.
 */
static enum status append(const struct run *run, json_t *event) {
  char path[PATH_MAX], time_text[32];
  const time_t now = time(NULL);
  struct tm parts;
  gmtime_r(&now, &parts);
  strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  json_object_set_new(event, "time", json_string(time_text));
  char *line = json_dumps(event, JSON_COMPACT | JSON_SORT_KEYS);
  json_decref(event);
  CHECK(line, STATUS_ENVIRONMENT, "out of memory: a line of the ledger");
  struct text text = {0};
  enum status status = run_path(path, run, RUN_LEDGER, "");
  if (status == STATUS_OK) status = text_format(&text, "%s\n", line);
  free(line);
  const int fd =
      status == STATUS_OK ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
  const bool good = fd >= 0 && write(fd, text.bytes, text.length) == (ssize_t)text.length;
  const int cause = errno;
  if (fd >= 0) close(fd);
  text_free(&text);
  TRY(status);
  CHECK(good, STATUS_WRITE, "cannot write '%s': %s", path, strerror(cause));
  return STATUS_OK;
}

static json_t *event_of(const char *event, const char *node) {
  return json_pack("{s:s, s:s}", "event", event, "node", node);
}

enum status ledger_start(const struct run *run, const char *node, int64_t ranks) {
  char host[128] = "-";
  (void)gethostname(host, sizeof host - 1);
  json_t *event = event_of("start", node);
  json_object_set_new(event, "host", json_string(host));
  json_object_set_new(event, "pid", json_integer(getpid()));
  json_object_set_new(event, "ranks", json_integer(ranks));
  return append(run, event);
}

enum status ledger_end(const struct run *run, const char *node, int exit_code, double seconds) {
  json_t *event = event_of("end", node);
  json_object_set_new(event, "exit", json_integer(exit_code));
  json_object_set_new(event, "seconds", json_real(seconds));
  return append(run, event);
}

enum status ledger_submit(const struct run *run, const char *node, const char *job) {
  json_t *event = event_of("submit", node);
  json_object_set_new(event, "job", json_string(job));
  return append(run, event);
}

static const char *text_of(const json_t *event, const char *key) {
  const char *value = json_string_value(json_object_get(event, key));
  return value ? value : "";
}

static void take(struct ledger_entry *entry, const json_t *event, const char *node) {
  if (strcmp(text_of(event, "node"), node) != 0) return;
  const char *kind = text_of(event, "event");
  if (strcmp(kind, "submit") == 0)
    snprintf(entry->job, sizeof entry->job, "%s", text_of(event, "job"));
  if (strcmp(kind, "start") == 0) {
    entry->attempts++;
    entry->last_exit = -1;
  }
  if (strcmp(kind, "end") != 0) return;
  entry->last_exit = (int)json_integer_value(json_object_get(event, "exit"));
  entry->seconds = json_number_value(json_object_get(event, "seconds"));
}

enum status ledger_read(struct ledger_entry *entry, const struct run *run, const char *node) {
  char path[PATH_MAX];
  struct text text = {0};
  *entry = (struct ledger_entry){.last_exit = -1};
  TRY(run_path(path, run, RUN_LEDGER, ""));
  if (!file_exists(path)) return STATUS_OK;
  TRY(file_read(&text, path));
  for (const char *line = text.bytes; *line; line += *line == '\n') {
    const size_t length = strcspn(line, "\n");
    json_t *event = json_loadb(line, length, 0, NULL);
    if (event) take(entry, event, node);
    json_decref(event);
    line += length;
  }
  text_free(&text);
  return STATUS_OK;
}
