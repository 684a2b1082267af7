#include "stages/sample/trajectory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/file.h"
#include "stages/stage.h"

static enum status add_line(struct trajectory *trajectory, json_t *line) {
  char *bytes = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(line);
  CHECK(bytes, STATUS_ENVIRONMENT, "out of memory: a line of a trajectory");
  const enum status status = text_format(&trajectory->lines, "%s\n", bytes);
  free(bytes);
  return status;
}

static enum status add_text(struct trajectory *trajectory, int64_t text, int64_t call, double time,
                            const int32_t *tokens) {
  struct text readable = {0};
  json_t *ids = json_array();
  for (int64_t i = 0; i < trajectory->positions; i++)
    json_array_append_new(ids, json_integer(tokens[i]));
  text_clear(&trajectory->decoded);
  enum status status = tokenizer_decode(trajectory->tokenizer, &trajectory->decoded, tokens,
                                        (size_t)trajectory->positions);
  if (status == STATUS_OK)
    status = text_add_readable(&readable, trajectory->decoded.bytes, trajectory->decoded.length);
  if (status == STATUS_OK)
    status = add_line(trajectory, json_pack("{s:I, s:I, s:f, s:O, s:s%}", "text",
                                            (json_int_t)text, "call", (json_int_t)call, "time",
                                            time, "tokens", ids, "decoded", readable.bytes,
                                            readable.length));
  json_decref(ids);
  text_free(&readable);
  return status;
}

static void observe(void *observer, int64_t call, double time, const int32_t *tokens) {
  struct trajectory *trajectory = observer;
  for (int64_t i = 0; i < trajectory->count && trajectory->status == STATUS_OK; i++)
    trajectory->status = add_text(trajectory, trajectory->first + i, call, time,
                                  tokens + i * trajectory->positions);
}

void trajectory_watch(struct trajectory *trajectory, struct flow_request *request) {
  const int64_t left = request->options->trajectories - request->first;
  if (left <= 0) return;
  trajectory->first = request->first;
  trajectory->count = left < request->count ? left : request->count;
  trajectory->positions = request->positions;
  request->observe = observe;
  request->observer = trajectory;
}

enum status trajectory_write(const struct trajectory *trajectory, const char *folder,
                             const char *set, int64_t first) {
  char path[STAGE_PATH_BYTES];
  TRY(trajectory->status);
  if (trajectory->count == 0) return STATUS_OK;
  CHECK(snprintf(path, sizeof path, "%s/trajectory-%s-%lld.jsonl", folder, set,
                 (long long)first) < STAGE_PATH_BYTES,
        STATUS_MISMATCH, "path too long: '%s'", folder);
  return file_write(path, trajectory->lines.bytes, trajectory->lines.length);
}

void trajectory_free(struct trajectory *trajectory) {
  text_free(&trajectory->lines);
  text_free(&trajectory->decoded);
}
