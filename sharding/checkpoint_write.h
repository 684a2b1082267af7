/* Writes the data of a checkpoint's files from all ranks, in blocks of BLOCKS_BYTES.
 *
 * A block is written by the rank that owns its first byte; other owners of its bytes send them
 * there. All ranks go through the blocks in the same order, so that sending and receiving always
 * meet. A rank that cannot write goes on exchanging, and reports at the end.
 */
#ifndef SHARDING_CHECKPOINT_WRITE_H
#define SHARDING_CHECKPOINT_WRITE_H

#include "sharding/checkpoint_runs.h"
#include "sharding/comm.h"

struct checkpoint_write {
  struct comm *comm;                      /* borrowed */
  const char *part;                       /* borrowed; the folder being written */
  const struct checkpoint_layout *layout; /* borrowed */
  const struct checkpoint_runs *runs;     /* borrowed */
  const struct checkpoint_items *items;   /* borrowed */
  int64_t block_count;                    /* of all files */
  uint64_t *hashes; /* owned; [block_count] by file, then place; of all ranks' blocks at the end */
};

/* Writes and flushes the data of all files, which exist already. Collective over comm; all ranks
 * return the same status. WRITE, ENVIRONMENT. */
enum status checkpoint_write_data(struct checkpoint_write *write);

/* Blocks of one file's data section. Local. */
int64_t checkpoint_write_blocks(const struct checkpoint_file *file);

#endif
