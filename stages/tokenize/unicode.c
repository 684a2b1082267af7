#include "stages/tokenize/unicode.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"

struct range {
  uint32_t first, last;
  uint8_t class_; /* 0: alternating upper and lower */
};

enum { UNICODE_CASED = 0 };

static const struct range ranges[] = {
#define RANGE(first, last, name) {first, last, UNICODE_##name},
#include "stages/tokenize/unicode_classes.def"
#undef RANGE
};

enum status unicode_open(struct unicode *unicode) {
  unicode->classes = malloc(UNICODE_CODE_POINTS);
  CHECK(unicode->classes, STATUS_ENVIRONMENT, "out of memory: classes of characters");
  memset(unicode->classes, UNICODE_OTHER, UNICODE_CODE_POINTS);
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    for (uint32_t c = ranges[i].first; c <= ranges[i].last; c++)
      unicode->classes[c] = ranges[i].class_                   ? ranges[i].class_
                            : ((c - ranges[i].first) & 1) != 0 ? UNICODE_LOWER
                                                               : UNICODE_UPPER;
  unicode->classes['\r'] |= UNICODE_LINE;
  unicode->classes['\n'] |= UNICODE_LINE;
  return STATUS_OK;
}

void unicode_close(struct unicode *unicode) {
  free(unicode->classes);
  unicode->classes = NULL;
}

const char *unicode_version(void) {
  return UNICODE_VERSION;
}

uint8_t unicode_class_beyond_ascii(const struct unicode *unicode, const char *bytes, size_t count,
                                   size_t *length) {
  const unsigned char *b = (const unsigned char *)bytes;
  const size_t expected = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
  *length = 1;
  if (expected > count || text_valid_utf8(bytes, expected) != expected) return UNICODE_OTHER;
  *length = expected;
  uint32_t c = b[0] & (0x7fu >> expected);
  for (size_t i = 1; i < expected; i++) c = c << 6 | (b[i] & 0x3fu);
  return unicode->classes[c];
}
