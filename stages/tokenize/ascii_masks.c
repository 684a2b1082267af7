#include "stages/tokenize/ascii_masks.h"

#ifdef __SSE2__
#include <emmintrin.h>

enum { BLOCK_BYTES = 16 };
typedef __m128i block_type;

static inline block_type block_load(const char *bytes) {
  return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

static inline uint64_t block_beyond(block_type block) {
  return (uint32_t)_mm_movemask_epi8(block);
}

static inline uint64_t block_is(block_type block, char value) {
  return block_beyond(_mm_cmpeq_epi8(block, _mm_set1_epi8(value)));
}

static inline uint64_t block_between(block_type block, char first, char last) {
  return block_beyond(_mm_and_si128(_mm_cmpgt_epi8(block, _mm_set1_epi8((char)(first - 1))),
                                    _mm_cmplt_epi8(block, _mm_set1_epi8((char)(last + 1)))));
}
#else
enum { BLOCK_BYTES = 1 };
typedef signed char block_type;

static inline block_type block_load(const char *bytes) {
  return (block_type)*bytes;
}

static inline uint64_t block_beyond(block_type block) {
  return block < 0;
}

static inline uint64_t block_is(block_type block, char value) {
  return block == value;
}

static inline uint64_t block_between(block_type block, char first, char last) {
  return block >= first && block <= last;
}
#endif

#include "stages/tokenize/ascii_masks.inc"

void ascii_masks_plain(struct ascii_masks *masks, const char *bytes) {
  classify(masks, bytes);
}

ascii_masks_function *ascii_masks_best(void) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return ascii_masks_avx512;
  return __builtin_cpu_supports("avx2") ? ascii_masks_avx2 : ascii_masks_plain;
}
