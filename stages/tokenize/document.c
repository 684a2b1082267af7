#include "stages/tokenize/document.h"

struct hash128 document_pair_hash(const struct document_pair *pair) {
  const struct hash128 source = hash_bytes128(pair->source, pair->source_count);
  return (struct hash128){.low = source.low,
                          .high = hash_bytes_seeded(pair->target, pair->target_count, source.high)};
}
