/* Classes of characters that pre-tokenisers distinguish (unicode_classes.def). */
#ifndef STAGES_TOKENIZE_UNICODE_H
#define STAGES_TOKENIZE_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

/* One bit each, so that sets of classes are masks. */
enum unicode_class {
  UNICODE_OTHER = 1,
  UNICODE_UPPER = 2,
  UNICODE_LOWER = 4,
  UNICODE_LETTER = 8, /* neither upper nor lower case */
  UNICODE_MARK = 16,
  UNICODE_NUMBER = 32,
  UNICODE_SPACE = 64,
  UNICODE_LINE = 128 /* CR and LF, beside SPACE */
};

enum { UNICODE_CODE_POINTS = 0x110000 };
enum { UNICODE_ANY_LETTER = UNICODE_UPPER | UNICODE_LOWER | UNICODE_LETTER };

struct unicode {
  uint8_t *classes; /* [UNICODE_CODE_POINTS], owned */
};

/* Fills the table. Local. ENVIRONMENT when memory is out. */
enum status unicode_open(struct unicode *unicode);
void unicode_close(struct unicode *unicode);

/* The version of the tables, such as "15.0.0". Borrowed. Local. */
const char *unicode_version(void);

/* Class of the first character of `bytes` (not empty) when it is not ASCII, and its length; a byte
 * that is not UTF-8 is one OTHER. Local. */
uint8_t unicode_class_beyond_ascii(const struct unicode *unicode, const char *bytes, size_t count,
                                   size_t *length);

/* Class and length of the first character of `bytes` (not empty). Local. */
static inline uint8_t unicode_class_at(const struct unicode *unicode, const char *bytes,
                                       size_t count, size_t *length) {
  const unsigned char first = (unsigned char)bytes[0];
  *length = 1;
  if (first < 0x80) return unicode->classes[first];
  return unicode_class_beyond_ascii(unicode, bytes, count, length);
}

/* Length of the run of characters whose class is in `set`. Local. */
static inline size_t unicode_run(const struct unicode *unicode, unsigned set, const char *bytes,
                                 size_t count) {
  size_t at = 0, length;
  while (at < count && (unicode_class_at(unicode, bytes + at, count - at, &length) & set))
    at += length;
  return at;
}

#endif
