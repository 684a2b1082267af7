/* Finds the end of a run of printable ASCII, 16 bytes at a time where the CPU can. */
#ifndef STAGES_TOKENIZE_WORD_SCAN_H
#define STAGES_TOKENIZE_WORD_SCAN_H

#include <stddef.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Number of bytes from '!' to '~' at the start of `bytes`. Local. */
static inline size_t word_scan_printable(const char *bytes, size_t count) {
  size_t at = 0;
#ifdef __SSE2__
  for (; count - at >= 16; at += 16) {
    const __m128i block = _mm_loadu_si128((const __m128i *)(const void *)(bytes + at));
    const __m128i inside = _mm_and_si128(_mm_cmpgt_epi8(block, _mm_set1_epi8(' ')),
                                         _mm_cmplt_epi8(block, _mm_set1_epi8(0x7f)));
    const unsigned mask = (unsigned)_mm_movemask_epi8(inside);
    if (mask != 0xffff) return at + (size_t)__builtin_ctz(~mask);
  }
#endif
  while (at < count && bytes[at] > ' ' && bytes[at] < 0x7f) at++;
  return at;
}

#endif
