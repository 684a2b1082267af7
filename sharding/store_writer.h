/* Writes one shard of a store: rows are added, columns side by side, and laid out when the shard is
 * finished. Memory is that of the shard's content, so keep shards within STORE_WRITER_SHARD_BYTES.
 *
 * Which rows go into which shard is for the stage to decide, from the input alone (a range of
 * bytes, a range of rows), never from ranks or the order of work: then shards are the same for any
 * number of workers. The name is NAME-TAG-00017.safetensors.zst, TAG being the first digits of the
 * hash of what made the content (tokenizer and rules). A finished shard has a side file (.done),
 * from which manifest_collect makes the manifest, and which tells a restarted stage what it need
 * not do again.
 */
#ifndef SHARDING_STORE_WRITER_H
#define SHARDING_STORE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* Rows are read one by one in any order, so frames are smaller than usual. */
enum { STORE_WRITER_FRAME_BYTES = 1 << 17 };
enum { STORE_WRITER_SHARD_BYTES = 64 << 20, STORE_WRITER_COLUMNS = 16, STORE_WRITER_PAIRS = 16 };

struct store_writer_column {
  const char *name; /* borrowed */
  enum dtype dtype;
  int dimensions;                                /* of one row; 0: one element */
  int64_t shape[SAFETENSORS_MAX_DIMENSIONS - 1]; /* of one row; ragged: [0] is ignored */
  bool ragged;                                   /* rows differ in their first axis */
  bool planes;                                   /* byte-plane filter; not for ragged columns */
};

struct store_writer_options {
  const char *folder, *name, *tag; /* borrowed */
  int64_t index;                   /* of the shard */
  int level;                       /* of zstd; 0: SINK_LEVEL */
  const struct store_writer_column *columns;
  int64_t column_count;
  const struct safetensors_pair *pairs; /* metadata: tokenizer, source, rules */
  int64_t pair_count;
};

struct store_writer {
  struct store_writer_options options; /* pointers borrowed until finished */
  int64_t rows[STORE_WRITER_COLUMNS];
  int64_t longest[STORE_WRITER_COLUMNS];
  struct text elements[STORE_WRITER_COLUMNS];
  struct text offsets[STORE_WRITER_COLUMNS];
};

/* Name of a shard, and whether it is finished (by this or an earlier start). Local. */
enum status store_writer_name(struct text *name, const struct store_writer_options *options);
bool store_writer_is_done(const struct store_writer_options *options);

/* Begins a shard. Local. MISMATCH for columns that cannot be. */
enum status store_writer_open(struct store_writer *writer,
                              const struct store_writer_options *options);

/* The same in the memory of a shard before it; the writer is zeroed, or store_writer_write was
 * called. Local. */
enum status store_writer_begin(struct store_writer *writer,
                               const struct store_writer_options *options);

/* Adds the next row of one column: `count` elements of the column's type. Local. MISMATCH when a
 * fixed column gets another width. */
enum status store_writer_add(struct store_writer *writer, int64_t column, const void *elements,
                             int64_t count);

/* Writes the shard and its side file. All columns must have the same number of rows. The memory is
 * kept for the next shard. Local. WRITE on failure. */
enum status store_writer_write(struct store_writer *writer);

/* store_writer_write, and frees the writer. */
enum status store_writer_close(struct store_writer *writer);

/* Drops a shard that was not finished. Accepts a zeroed or closed writer. Local. */
void store_writer_abandon(struct store_writer *writer);

/* The narrowest of U16 and U32 that holds ids below `vocabulary`. Local. */
enum dtype store_writer_token_type(int64_t vocabulary);

#endif
