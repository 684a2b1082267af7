/* Growing text, and small helpers on strings. */
#ifndef PIPELINE_BASE_TEXT_H
#define PIPELINE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

/* A growing string, always ended by a zero byte once anything was added. Zero-initialise. */
struct text {
  char *bytes; /* owned */
  size_t length;
  size_t capacity;
};

/* Makes room for `more` further bytes and the zero byte behind them. Local. ENVIRONMENT when memory
 * is out. */
enum status text_reserve(struct text *text, size_t more);

/* Appends bytes, a string, or formatted text. Local. ENVIRONMENT when memory is out. */
enum status text_add_bytes(struct text *text, const void *bytes, size_t count);
enum status text_add(struct text *text, const char *string);
enum status text_format(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends bytes as UTF-8 without zeros: each byte that is not part of such becomes U+FFFD. Local.
 * ENVIRONMENT when memory is out. */
enum status text_add_readable(struct text *text, const char *bytes, size_t count);

/* Empties without giving memory back; frees. Local. */
void text_clear(struct text *text);
void text_free(struct text *text);

/* The one of `count` names nearest to `word` by edit distance, or NULL when none is within half of
 * the word's length (at least 2). Borrowed. Local. */
const char *text_nearest(const char *word, const char *const *names, size_t count);

/* Writes a size for people: "1.50 GiB". Returns `out`. Local. */
char *text_size(char out[24], uint64_t bytes);

/* Reads a size: a number, perhaps with a fraction, and one of B, KiB, MiB, GiB, TiB, kB, MB, GB,
 * TB. Local. */
bool text_parse_size(uint64_t *bytes, const char *string);

/* Reads a whole decimal integer or real number; false when anything is left over or it does not
 * fit. Local. */
bool text_parse_integer(int64_t *value, const char *string);
bool text_parse_real(double *value, const char *string);

/* Number of bytes at the start of `bytes` that are valid UTF-8 (RFC 3629). Local. */
size_t text_valid_utf8(const char *bytes, size_t count);

#endif
