/* Finds the end of runs of ASCII characters, 16 bytes at a time where the CPU can. */
#ifndef STAGES_TOKENIZE_WORD_SCAN_H
#define STAGES_TOKENIZE_WORD_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __SSE2__
#include <emmintrin.h>

/* Bit i: whether byte i | `bit` is strictly between the two. */
static inline unsigned word_scan_mask(const char *bytes, char bit, char below, char above) {
  const __m128i block =
      _mm_or_si128(_mm_loadu_si128((const __m128i *)(const void *)bytes), _mm_set1_epi8(bit));
  return (unsigned)_mm_movemask_epi8(_mm_and_si128(_mm_cmpgt_epi8(block, _mm_set1_epi8(below)),
                                                   _mm_cmplt_epi8(block, _mm_set1_epi8(above))));
}
#endif

/* Length of the run of bytes b with `below` < b | `bit` < `above`; all ASCII. Local. */
static inline size_t word_scan_run(const char *bytes, size_t count, char bit, char below,
                                   char above) {
  size_t at = 0;
#ifdef __SSE2__
  for (; count - at >= 16; at += 16) {
    const unsigned mask = word_scan_mask(bytes + at, bit, below, above);
    if (mask != 0xffff) return at + (size_t)__builtin_ctz(~mask);
  }
#endif
  while (at < count && (bytes[at] | bit) > below && (bytes[at] | bit) < above) at++;
  return at;
}

/* Number of bytes from '!' to '~' at the start of `bytes`. Local. */
static inline size_t word_scan_printable(const char *bytes, size_t count) {
  return word_scan_run(bytes, count, 0, ' ', 0x7f);
}

/* Number of ASCII letters, and of small ones, at the start of `bytes`. Local. */
static inline size_t word_scan_letters(const char *bytes, size_t count) {
  return word_scan_run(bytes, count, 0x20, 'a' - 1, 'z' + 1);
}

static inline size_t word_scan_small(const char *bytes, size_t count) {
  return word_scan_run(bytes, count, 0, 'a' - 1, 'z' + 1);
}

/* Number of spaces at the start of `bytes`. Local. */
static inline size_t word_scan_spaces(const char *bytes, size_t count) {
  return word_scan_run(bytes, count, 0, ' ' - 1, ' ' + 1);
}

/* Whether the text ends at `at` or goes on with an ASCII byte. Local. */
static inline bool word_scan_is_end(const char *bytes, size_t count, size_t at) {
  return at >= count || (unsigned char)bytes[at] < 0x80;
}

#endif
