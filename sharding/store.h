/* A folder of shard files seen as one array of rows.
 *
 * A shard is a safetensors file (usually seekable) with one tensor per column; all columns of a
 * shard have the same rows. A column is fixed ([rows, ...] of one width), or ragged: "NAME" holds
 * all elements one after another and "NAME.offsets" (I64 [rows + 1]) says where each row begins.
 * Shards are taken in the order of their names; which of them belong to the array is said by the
 * folder's manifest, whose hashes are checked while reading. Descriptors stay open.
 *
 * A store is constant once open; each thread reads with a cache of its own (struct source_cache).
 */
#ifndef SHARDING_STORE_H
#define SHARDING_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/base/bf16.h"
#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"

struct store_shard {
  struct safetensors file;
  int64_t first_row, rows;
};

struct store {
  char *folder; /* owned */
  int64_t shard_count;
  struct store_shard *shards; /* owned */
  int64_t rows;
  char hash[HASH_HEX_BYTES]; /* of the names and block hashes of all shards */
};

struct store_column {
  const struct store *store; /* borrowed */
  char name[64], offsets_name[80];
  enum dtype dtype; /* of the elements, filters undone */
  int64_t width;    /* elements of a row; of the longest row when ragged */
  int64_t unit;     /* ragged: elements for each index of the row's first axis */
  int dimensions;   /* of one row; 0 when a row is one element */
  int64_t shape[SAFETENSORS_MAX_DIMENSIONS]; /* of one row; [0] is the longest when ragged */
  bool ragged, planes;
};

/* Opens the shards of `folder` that were written under `name` (store_writer.h; "" for all). Local.
 * MISMATCH when the folder is not finished or has no such shard; DAMAGED names the shard;
 * ENVIRONMENT when there are more shards than descriptors. */
enum status store_open(struct store *store, const char *folder, const char *name);
void store_close(struct store *store);

/* Finds a column. All shards must agree on type and width. Local. MISMATCH names the column and
 * those there are; DAMAGED names the shard that disagrees. */
enum status store_find(const struct store *store, struct store_column *column, const char *name);

/* A metadata value that all shards agree on ("tokenizer", "rules"), or NULL. Borrowed. Local. */
const char *store_value(const struct store *store, const char *key);

/* Reads one row, converted: `out` has room for column->width elements; *length (may be NULL)
 * receives how many there are, the rest of `out` is left alone. `row` in [0, store->rows). Integers
 * from U8 I8 U16 I16 U32 I32 U64 I64 with a check of range; floats from F32 F64 BF16 F16; bf16 from
 * BF16 only. Local. DAMAGED names shard, block and row; MISMATCH for other types. */
enum status store_read_int32(const struct store_column *column, struct source_cache *cache,
                             int64_t row, int32_t *out, int64_t *length);
enum status store_read_float(const struct store_column *column, struct source_cache *cache,
                             int64_t row, float *out, int64_t *length);
enum status store_read_bf16(const struct store_column *column, struct source_cache *cache,
                            int64_t row, bf16 *out, int64_t *length);

/* Reads one row as stored (filters undone), of the column's own type. Local. DAMAGED as above. */
enum status store_read(const struct store_column *column, struct source_cache *cache, int64_t row,
                       void *out, int64_t *length);

#endif
