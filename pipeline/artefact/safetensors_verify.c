/* safetensors.h: the hash of the data section. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

static enum status hash_blocks(const struct safetensors *file, struct source_cache *cache,
                               struct text *hashes) {
  unsigned char *block = malloc(BLOCKS_BYTES);
  CHECK(block, STATUS_ENVIRONMENT, "out of memory");
  enum status status = STATUS_OK;
  const uint64_t end = file->source.content_bytes;
  for (uint64_t at = file->header_bytes; at < end && status == STATUS_OK; at += BLOCKS_BYTES) {
    const uint64_t bytes = end - at < BLOCKS_BYTES ? end - at : BLOCKS_BYTES;
    status = source_read(&file->source, cache, block, at, bytes);
    const uint64_t hash = status == STATUS_OK ? hash_bytes(block, bytes) : 0;
    if (status == STATUS_OK) status = text_add_bytes(hashes, &hash, sizeof hash);
  }
  free(block);
  return status;
}

enum status safetensors_verify(const struct safetensors *file) {
  const char *expected = safetensors_value(file, "data_hash");
  if (!expected) return STATUS_OK;
  struct text hashes = {0};
  struct source_cache cache = {0};
  char found[HASH_HEX_BYTES] = "";
  const enum status status = hash_blocks(file, &cache, &hashes);
  if (status == STATUS_OK)
    hash_to_hex(found, hash_bytes128(hashes.bytes ? hashes.bytes : "", hashes.length));
  text_free(&hashes);
  source_cache_free(&cache);
  TRY(status);
  CHECK(strcmp(found, expected) == 0, STATUS_DAMAGED,
        "'%s' is damaged: its data has the hash %s, its header says %s", file->source.path, found,
        expected);
  return STATUS_OK;
}
