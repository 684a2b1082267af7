#include <immintrin.h>

#include "stages/tokenize/ascii_masks.h"

enum { BLOCK_BYTES = 64 };
typedef __m512i block_type;

static inline block_type block_load(const char *bytes) {
  return _mm512_loadu_si512((const void *)bytes);
}

static inline uint64_t block_beyond(block_type block) {
  return _mm512_movepi8_mask(block);
}

static inline uint64_t block_is(block_type block, char value) {
  return _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(value));
}

static inline uint64_t block_between(block_type block, char first, char last) {
  const block_type offset = _mm512_sub_epi8(block, _mm512_set1_epi8(first));
  return _mm512_cmple_epu8_mask(offset, _mm512_set1_epi8((char)(last - first)));
}

#include "stages/tokenize/ascii_masks.inc"

void ascii_masks_avx512(struct ascii_masks *masks, const char *bytes) {
  classify(masks, bytes);
}
