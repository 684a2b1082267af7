/* Random access to the content of a file, plain or seekable, checked while it is read.
 *
 * A source is constant once open and may be read by several threads; what changes lives in a
 * cache, one per thread: the few blocks decoded or checked last. Descriptors stay open.
 */
#ifndef PIPELINE_ARTEFACT_SOURCE_H
#define PIPELINE_ARTEFACT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/blocks.h"
#include "pipeline/artefact/seekable.h"
#include "pipeline/base/error.h"

struct source {
  char *path; /* owned */
  int fd;
  bool seekable;
  uint64_t file_bytes, content_bytes;
  struct seekable_table table; /* of a seekable file */
  struct blocks blocks;        /* owned copy; count = 0: unchecked */
};

enum { SOURCE_CACHE_SLOTS = 64 }; /* blocks of at most 1 MiB: small data stays decoded */

/* Zero-initialise. Free (or clear) it before closing a source that it read. */
struct source_cache {
  struct source_slot {
    const struct source *source; /* borrowed; NULL: empty */
    int64_t block;
    uint64_t used;          /* when, in reads of this cache */
    unsigned char *content; /* owned */
    uint64_t capacity, bytes;
  } slots[SOURCE_CACHE_SLOTS];
  uint64_t clock;
  struct ZSTD_DCtx_s *context; /* owned */
  unsigned char *stored;       /* owned; one stored block */
  uint64_t stored_capacity;
};

/* Opens a file; its name says whether it is seekable. `blocks` (may be NULL) are the hashes that
 * the manifest keeps: sizes are compared at once, hashes of each block when it is read. Local.
 * MISMATCH when missing, DAMAGED when truncated or without a sound seek table. */
enum status source_open(struct source *source, const char *path, const struct blocks *blocks);
void source_close(struct source *source);

/* Copies `bytes` bytes of content from `offset` on. `cache` may be NULL for a plain source without
 * hashes. Local. DAMAGED names the file and the block or byte. */
enum status source_read(const struct source *source, struct source_cache *cache, void *out,
                        uint64_t offset, uint64_t bytes);

/* The range of content of the block that holds byte `offset` of a seekable or hashed source: what
 * is lost when the block is damaged. Local. */
struct blocks_range source_block(const struct source *source, uint64_t offset);

void source_cache_free(struct source_cache *cache);

#endif
