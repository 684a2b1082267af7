/* Classes of 64 bytes at once, one bit each: what pre-tokenisers and word splitters look at.
 * Compiled for several instruction sets.
 */
#ifndef STAGES_TOKENIZE_ASCII_MASKS_H
#define STAGES_TOKENIZE_ASCII_MASKS_H

#include <stdint.h>

enum { ASCII_MASKS_BYTES = 64 };

/* Bit i is set when byte i is in the class. */
struct ascii_masks {
  uint64_t upper, lower, digit;
  uint64_t white;      /* TAB, LF, VT, FF, CR and space */
  uint64_t blank;      /* TAB, LF, CR and space */
  uint64_t line;       /* LF and CR */
  uint64_t space;      /* the space alone */
  uint64_t apostrophe; /* ' */
  uint64_t slash;      /* / */
  uint64_t printable;  /* '!' to '~' */
  uint64_t beyond;     /* not ASCII */
};

/* Classifies ASCII_MASKS_BYTES bytes. Local. */
typedef void ascii_masks_function(struct ascii_masks *masks, const char *bytes);

/* For any CPU of the build's kind; for those with the instruction set in the name. */
ascii_masks_function ascii_masks_plain, ascii_masks_avx2, ascii_masks_avx512;

/* The fastest one that this CPU can run. Local. */
ascii_masks_function *ascii_masks_best(void);

#endif
