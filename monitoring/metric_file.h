/* metrics.jsonl: what a training node measured, one JSON object a line (formats.md, "Metrics").
 *
 * Each record has "event" and "step" (optimizer steps done). Lines are written whole and in order
 * of steps. A start that resumes after step S drops every record of a later step, and a line that a
 * crash cut short, so that no step is there twice. Numbers keep every bit; what JSON has no number
 * for is written as the strings "nan", "inf", "-inf".
 */
#ifndef MONITORING_METRIC_FILE_H
#define MONITORING_METRIC_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

#define METRIC_FILE_NAME "metrics.jsonl"

enum { METRIC_WAITING_BYTES = 64 << 20 };

struct metric_file {
  int descriptor;   /* -1: records go nowhere */
  char *path;       /* owned */
  struct text line; /* the record being made */
  enum status status;
  struct text waiting; /* records that are not wholly in the file */
  size_t written;      /* bytes of these that are */
};

/* Opens (or makes) the file for appending after dropping records of steps beyond `step`; -1 drops
 * all. `path` NULL: a file that takes records and keeps none. Local. WRITE on failure. */
enum status metric_file_open(struct metric_file *file, const char *path, int64_t step);

/* Accepts a zeroed file. Local. */
void metric_file_close(struct metric_file *file);

/* Begins a record. Keys follow, then metric_file_end. Local. */
void metric_file_begin(struct metric_file *file, const char *event, int64_t step);

void metric_file_integer(struct metric_file *file, const char *key, int64_t value);
void metric_file_real(struct metric_file *file, const char *key, double value);
void metric_file_text(struct metric_file *file, const char *key, const char *value);

/* An object inside the record: keys between the two calls are its own. Local. */
void metric_file_open_group(struct metric_file *file, const char *key);
void metric_file_close_group(struct metric_file *file);

/* Writes the record. Where that fails, say on a full disk, it waits in memory and goes before the
 * next one (R-CKP-4). Local. WRITE when METRIC_WAITING_BYTES wait, ENVIRONMENT when memory was out.
 */
enum status metric_file_end(struct metric_file *file);

/* Flushes to storage what waits, too: before a checkpoint that relies on the records. Local. WRITE
 * on failure: the records go on waiting. */
enum status metric_file_sync(struct metric_file *file);

#endif
