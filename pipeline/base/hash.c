#include "pipeline/base/hash.h"

#include <stdio.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h> /* the same functions, for the instructions that the processor has */
#else
#include <xxhash.h>
#endif

static struct hash128 from_library(XXH128_hash_t value) {
  return (struct hash128){.low = value.low64, .high = value.high64};
}

uint64_t hash_bytes(const void *data, size_t bytes) {
  return XXH3_64bits(data, bytes);
}

uint64_t hash_bytes_seeded(const void *data, size_t bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

struct hash128 hash_bytes128(const void *data, size_t bytes) {
  return from_library(XXH3_128bits(data, bytes));
}

struct hash_stream *hash_open(void) {
  XXH3_state_t *state = XXH3_createState();
  if (state) XXH3_128bits_reset(state);
  return (struct hash_stream *)state;
}

void hash_add(struct hash_stream *stream, const void *data, size_t bytes) {
  XXH3_128bits_update((XXH3_state_t *)stream, data, bytes);
}

struct hash128 hash_result(const struct hash_stream *stream) {
  return from_library(XXH3_128bits_digest((const XXH3_state_t *)stream));
}

void hash_close(struct hash_stream *stream) {
  XXH3_freeState((XXH3_state_t *)stream);
}

void hash_to_hex(char hex[HASH_HEX_BYTES], struct hash128 hash) {
  snprintf(hex, HASH_HEX_BYTES, "%016llx%016llx", (unsigned long long)hash.high,
           (unsigned long long)hash.low);
}
