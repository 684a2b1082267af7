#include "pipeline/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64 };

enum status text_reserve(struct text *text, size_t more) {
  const size_t needed = text->length + more + 1;
  if (needed <= text->capacity) return STATUS_OK;
  const size_t capacity = needed > 2 * text->capacity ? needed : 2 * text->capacity;
  char *bytes = realloc(text->bytes, capacity);
  CHECK(bytes, STATUS_ENVIRONMENT, "out of memory: a text of %zu bytes", capacity);
  text->bytes = bytes;
  text->capacity = capacity;
  return STATUS_OK;
}

enum status text_add_bytes(struct text *text, const void *bytes, size_t count) {
  TRY(text_reserve(text, count));
  if (count) memcpy(text->bytes + text->length, bytes, count);
  text->length += count;
  text->bytes[text->length] = '\0';
  return STATUS_OK;
}

enum status text_add(struct text *text, const char *string) {
  return text_add_bytes(text, string, strlen(string));
}

enum status text_format(struct text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int count = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  CHECK(count >= 0, STATUS_INTERNAL, "format '%s' is not usable", format);
  TRY(text_reserve(text, (size_t)count));
  va_start(arguments, format);
  vsnprintf(text->bytes + text->length, (size_t)count + 1, format, arguments);
  va_end(arguments);
  text->length += (size_t)count;
  return STATUS_OK;
}

void text_clear(struct text *text) {
  text->length = 0;
  if (text->bytes) text->bytes[0] = '\0';
}

void text_free(struct text *text) {
  free(text->bytes);
  *text = (struct text){0};
}

static size_t smallest(size_t a, size_t b, size_t c) {
  const size_t ab = a < b ? a : b;
  return ab < c ? ab : c;
}

/* Levenshtein distance of two names, cut to NAME_BYTES each. */
static size_t edit_distance(const char *a, const char *b) {
  size_t row[NAME_BYTES + 1];
  const size_t na = strnlen(a, NAME_BYTES), nb = strnlen(b, NAME_BYTES);
  for (size_t j = 0; j <= nb; j++) row[j] = j;
  for (size_t i = 1; i <= na; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= nb; j++) {
      const size_t above = row[j];
      row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[nb];
}

const char *text_nearest(const char *word, const char *const *names, size_t count) {
  const char *best = NULL;
  size_t limit = strlen(word) / 2;
  if (limit < 2) limit = 2;
  for (size_t i = 0; i < count; i++) {
    const size_t distance = edit_distance(word, names[i]);
    if (distance > limit || (best && distance == limit)) continue;
    limit = distance;
    best = names[i];
  }
  return best;
}

char *text_size(char out[24], uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  int unit = 0;
  for (; value >= 1024 && unit < 6; unit++) value /= 1024;
  snprintf(out, 24, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
  return out;
}

bool text_parse_integer(int64_t *value, const char *string) {
  char *end;
  errno = 0;
  const long long parsed = strtoll(string, &end, 10);
  if (end == string || *end || errno) return false;
  *value = parsed;
  return true;
}

bool text_parse_real(double *value, const char *string) {
  char *end;
  errno = 0;
  const double parsed = strtod(string, &end);
  if (end == string || *end || errno) return false;
  *value = parsed;
  return true;
}

/* Bytes of one unit; 0 for a word that is none. */
static double unit_of(const char *word) {
  static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"};
  static const double sizes[] = {1, 1e3, 1e6, 1e9, 1e12, 0x1p10, 0x1p20, 0x1p30, 0x1p40};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (strcmp(word, names[i]) == 0) return sizes[i];
  return 0;
}

bool text_parse_size(uint64_t *bytes, const char *string) {
  char *end;
  const double number = strtod(string, &end);
  const double unit = unit_of(end);
  if (end == string || unit == 0 || !(number >= 0 && number * unit < 0x1p63)) return false;
  *bytes = (uint64_t)(number * unit);
  return true;
}

/* Length of the valid sequence at `s` with `left` bytes remaining, 0 when there is none. */
static size_t sequence_length(const unsigned char *s, size_t left) {
  if (s[0] < 0x80) return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  const size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (length > left) return 0;
  for (size_t i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if (s[0] == 0xe0 && s[1] < 0xa0) return 0; /* overlong */
  if (s[0] == 0xed && s[1] > 0x9f) return 0; /* surrogates */
  if (s[0] == 0xf0 && s[1] < 0x90) return 0; /* overlong */
  if (s[0] == 0xf4 && s[1] > 0x8f) return 0; /* beyond U+10FFFF */
  return length;
}

/* Whether 32 bytes are all ASCII. */
static bool is_ascii_block(const char *bytes) {
  uint64_t words[4];
  memcpy(words, bytes, sizeof words);
  return !((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u);
}

size_t text_valid_utf8(const char *bytes, size_t count) {
  size_t at = 0;
  while (at < count) {
    while (count - at >= 32 && is_ascii_block(bytes + at)) at += 32;
    if (at == count) return at;
    const size_t length = sequence_length((const unsigned char *)bytes + at, count - at);
    if (!length) return at;
    at += length;
  }
  return at;
}

enum status text_add_readable(struct text *text, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const size_t length = strnlen(bytes + i, text_valid_utf8(bytes + i, count - i));
    TRY(text_add_bytes(text, bytes + i, length));
    i += length;
    if (i < count) TRY(text_add(text, "\xef\xbf\xbd"));
  }
  return STATUS_OK;
}
