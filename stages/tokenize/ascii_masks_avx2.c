#include <immintrin.h>

#include "stages/tokenize/ascii_masks.h"

enum { BLOCK_BYTES = 32 };
typedef __m256i block_type;

static inline block_type block_load(const char *bytes) {
  return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

static inline uint64_t block_beyond(block_type block) {
  return (uint32_t)_mm256_movemask_epi8(block);
}

static inline uint64_t block_is(block_type block, char value) {
  return block_beyond(_mm256_cmpeq_epi8(block, _mm256_set1_epi8(value)));
}

static inline uint64_t block_between(block_type block, char first, char last) {
  return block_beyond(
      _mm256_and_si256(_mm256_cmpgt_epi8(block, _mm256_set1_epi8((char)(first - 1))),
                       _mm256_cmpgt_epi8(_mm256_set1_epi8((char)(last + 1)), block)));
}

#include "stages/tokenize/ascii_masks.inc"

void ascii_masks_avx2(struct ascii_masks *masks, const char *bytes) {
  classify(masks, bytes);
}
