/* Rows of one shard file for tools without the sharding layer: what is in a row, for people and for
 * plain copies. Programs that compute read shards through sharding/store.h.
 */
#ifndef PIPELINE_ARTEFACT_SHARD_ROWS_H
#define PIPELINE_ARTEFACT_SHARD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/base/text.h"

/* One column of a shard. A column with "NAME.offsets" beside it is ragged. */
struct shard_rows {
  const struct safetensors *file;           /* borrowed */
  const struct safetensors_tensor *tensor;  /* borrowed */
  const struct safetensors_tensor *offsets; /* borrowed; NULL: every row has one length */
  struct safetensors_tensor plain;          /* filters undone */
  bool planes;
  int64_t rows;
};

/* Finds a column, or the first one when `name` is NULL. Local. MISMATCH with the nearest name. */
enum status shard_rows_find(struct shard_rows *column, const struct safetensors *file,
                            const char *name);

/* Reads row `row`, filters undone, into `bytes`. Local. DAMAGED as source_read. */
enum status shard_rows_read(const struct shard_rows *column, struct source_cache *cache,
                            int64_t row, struct text *bytes);

/* Appends a row for people: at most `limit` numbers, or the characters of a row of text. Local. */
enum status shard_rows_format(struct text *line, const struct shard_rows *column,
                              const struct text *bytes, size_t limit);

/* Writes a shard as a plain safetensors file at `path`, filters undone, and checks the copy. Local.
 * WRITE, also when something is at `path`; DAMAGED. */
enum status shard_rows_export(const struct safetensors *file, const char *path);

#endif
