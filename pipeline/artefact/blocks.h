/* Hashes of a file's stored bytes, block by block: made while the file is written, kept in the
 * manifest, checked while it is read.
 *
 * The blocks of a plain file are block 0 of `first_bytes` (the header of a safetensors file), then
 * blocks of `block_bytes`. The blocks of a seekable file (`first_bytes` = 0) are its frames, and
 * its seek table as the last block. Together they cover every byte of the file.
 */
#ifndef PIPELINE_ARTEFACT_BLOCKS_H
#define PIPELINE_ARTEFACT_BLOCKS_H

#include <stdint.h>

#include "pipeline/base/error.h"

enum { BLOCKS_BYTES = 1 << 20 }; /* the usual block */

struct blocks {
  uint64_t file_bytes;
  uint64_t first_bytes; /* 0: seekable */
  uint64_t block_bytes;
  int64_t count;
  uint64_t *hashes; /* owned; XXH3, 64 bits */
};

/* Bytes and place of block `index` of a plain file. Local. */
struct blocks_range {
  uint64_t offset, bytes;
};
struct blocks_range blocks_range(const struct blocks *blocks, int64_t index);

/* How many blocks a plain file of the stated sizes has. Local. */
int64_t blocks_expected(const struct blocks *blocks);

/* Appends the hash of `bytes` stored bytes. Local. ENVIRONMENT when memory is out. */
enum status blocks_add(struct blocks *blocks, const void *stored, uint64_t bytes);

/* Appends a known hash. Local. ENVIRONMENT when memory is out. */
enum status blocks_add_hash(struct blocks *blocks, uint64_t hash);

/* Compares stored bytes with block `index`. Local. DAMAGED, naming `path` and the block. */
enum status blocks_check(const struct blocks *blocks, int64_t index, const void *stored,
                         uint64_t bytes, const char *path);

/* One hash for the whole file: of its size and all block hashes. Local. */
uint64_t blocks_digest(const struct blocks *blocks);

/* Hashes a file that lacks a list (plain or seekable by its name), and checks a file against its
 * list from first to last byte. Local. DAMAGED names the file and the block. */
enum status blocks_of_file(struct blocks *blocks, const char *path);
enum status blocks_verify_file(const struct blocks *blocks, const char *path);

/* Copies; frees. Local. ENVIRONMENT when memory is out. */
enum status blocks_copy(struct blocks *to, const struct blocks *from);
void blocks_free(struct blocks *blocks);

#endif
