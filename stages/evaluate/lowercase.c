#include "stages/evaluate/words.h"

struct run {
  uint32_t first, last, step;
  int32_t difference;
};

static const struct run runs[] = {
#define RUN(first, last, step, difference) {first, last, step, difference},
#include "stages/evaluate/lowercase.def"
#undef RUN
};

enum { RUNS = sizeof runs / sizeof *runs };

static uint32_t lower(uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  size_t low = 0, high = RUNS; /* the last run that begins at or before code */
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    if (runs[middle].first <= code)
      low = middle;
    else
      high = middle;
  }
  const struct run *run = &runs[low];
  if (code < run->first || code > run->last || (code - run->first) % run->step) return code;
  return (uint32_t)((int64_t)code + run->difference);
}

/* Bytes of the character that a valid first byte begins. */
static size_t length_of(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static uint32_t read_code(const unsigned char *bytes, size_t length) {
  uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) code = code << 6 | (bytes[i] & 0x3f);
  return code;
}

static enum status add_code(struct text *out, uint32_t code) {
  unsigned char bytes[4];
  const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length; i-- > 1; code >>= 6) bytes[i] = (unsigned char)(0x80 | (code & 0x3f));
  static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
  bytes[0] = (unsigned char)(marks[length] | code);
  return text_add_bytes(out, bytes, length);
}

enum status words_lower(struct text *out, const char *bytes, size_t count) {
  for (size_t at = 0; at < count;) {
    const size_t valid = text_valid_utf8(bytes + at, count - at);
    for (size_t end = at + valid; at < end;) {
      const size_t length = length_of((unsigned char)bytes[at]);
      TRY(add_code(out, lower(read_code((const unsigned char *)bytes + at, length))));
      at += length;
    }
    if (at < count) TRY(text_add_bytes(out, bytes + at++, 1));
  }
  return STATUS_OK;
}
