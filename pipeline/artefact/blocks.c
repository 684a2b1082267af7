#include "pipeline/artefact/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/hash.h"

struct blocks_range blocks_range(const struct blocks *blocks, int64_t index) {
  struct blocks_range range = {.offset = 0, .bytes = blocks->first_bytes};
  if (index > 0) {
    range.offset = blocks->first_bytes + (uint64_t)(index - 1) * blocks->block_bytes;
    range.bytes = blocks->block_bytes;
  }
  if (range.offset + range.bytes > blocks->file_bytes)
    range.bytes = blocks->file_bytes - range.offset;
  return range;
}

int64_t blocks_expected(const struct blocks *blocks) {
  if (blocks->file_bytes == 0) return 0;
  if (blocks->file_bytes <= blocks->first_bytes) return 1;
  const uint64_t rest = blocks->file_bytes - blocks->first_bytes;
  return 1 + (int64_t)((rest - 1) / blocks->block_bytes + 1);
}

static enum status grow(struct blocks *blocks, int64_t count) {
  uint64_t *hashes = realloc(blocks->hashes, (size_t)count * sizeof *hashes);
  CHECK(hashes, STATUS_ENVIRONMENT, "out of memory: %lld block hashes", (long long)count);
  blocks->hashes = hashes;
  return STATUS_OK;
}

enum status blocks_add_hash(struct blocks *blocks, uint64_t hash) {
  const int64_t n = blocks->count;
  if ((n & (n - 1)) == 0) TRY(grow(blocks, n ? 2 * n : 1)); /* full at powers of two */
  blocks->hashes[blocks->count++] = hash;
  return STATUS_OK;
}

enum status blocks_add(struct blocks *blocks, const void *stored, uint64_t bytes) {
  return blocks_add_hash(blocks, hash_bytes(stored, bytes));
}

enum status blocks_check(const struct blocks *blocks, int64_t index, const void *stored,
                         uint64_t bytes, const char *path) {
  CHECK(index < blocks->count, STATUS_DAMAGED, "'%s' has block %lld, the manifest lists %lld", path,
        (long long)index, (long long)blocks->count);
  const uint64_t found = hash_bytes(stored, bytes);
  CHECK(found == blocks->hashes[index], STATUS_DAMAGED,
        "'%s' is damaged in block %lld: its hash is %016llx, the manifest says %016llx", path,
        (long long)index, (unsigned long long)found, (unsigned long long)blocks->hashes[index]);
  return STATUS_OK;
}

uint64_t blocks_digest(const struct blocks *blocks) {
  const size_t bytes = (size_t)blocks->count * sizeof *blocks->hashes;
  return hash_bytes_seeded(blocks->hashes, bytes, blocks->file_bytes);
}

enum status blocks_copy(struct blocks *to, const struct blocks *from) {
  struct blocks copy = *from;
  copy.hashes = NULL;
  copy.count = 0;
  for (int64_t i = 0; i < from->count; i++) {
    const enum status status = blocks_add_hash(&copy, from->hashes[i]);
    if (status != STATUS_OK) blocks_free(&copy);
    TRY(status);
  }
  *to = copy;
  return STATUS_OK;
}

void blocks_free(struct blocks *blocks) {
  free(blocks->hashes);
  *blocks = (struct blocks){0};
}
