/* Which rank writes which bytes of a checkpoint's files: the layout of the files laid over the rows
 * that ranks hold. The same list is made on every rank.
 */
#ifndef SHARDING_CHECKPOINT_RUNS_H
#define SHARDING_CHECKPOINT_RUNS_H

#include <stdint.h>

#include "pipeline/artefact/checkpoint_layout.h"
#include "sharding/checkpoint.h"

/* Neighbouring bytes of one file that one rank writes. */
struct checkpoint_run {
  int64_t file;
  uint64_t begin, bytes; /* within the file's data section */
  int owner;
  int64_t item;
  uint64_t item_offset; /* of the first byte in the whole global tensor */
};

struct checkpoint_runs {
  int64_t count;
  struct checkpoint_run *runs; /* owned; by file, then place */
};

struct checkpoint_held {
  int64_t first_row, rows;
};

/* Makes the list; held[rank * items->count + item] says what each rank holds. Rows held by several
 * ranks go to one of them, a different one for each item. Local. MISMATCH when a row is held by
 * none, naming item and row. */
enum status checkpoint_runs_make(struct checkpoint_runs *runs,
                                 const struct checkpoint_layout *layout,
                                 const struct checkpoint_items *items,
                                 const struct checkpoint_held *held, int ranks);
void checkpoint_runs_free(struct checkpoint_runs *runs);

/* Bytes of one row of an item. Local. */
uint64_t checkpoint_runs_row_bytes(const struct checkpoint_item *item);

/* The item as a global tensor. Names are borrowed. Local. */
struct safetensors_tensor checkpoint_runs_tensor(const struct checkpoint_item *item);

#endif
