/* Gzip streams (RFC 1952), with the checks of length and CRC-32 that libarchive 3.6 leaves out: one
 * member or several, one after another, then nothing but zeros.
 */
#ifndef STAGES_TOKENIZE_GUNZIP_H
#define STAGES_TOKENIZE_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/error.h"

/* Where compressed bytes come from: sets the next block, of no bytes at the end. */
struct gunzip_source {
  enum status (*next)(void *state, const char **bytes, size_t *count);
  void *state;
};

struct gunzip; /* opaque: it holds a state of zlib */

/* Whether bytes begin a gzip stream. Local. */
bool gunzip_is_gzip(const char *head, size_t count);

/* Local. ENVIRONMENT when memory is out. */
enum status gunzip_open(struct gunzip **gunzip, struct gunzip_source source);
void gunzip_close(struct gunzip *gunzip);

/* The next block of content, of no bytes at the end; borrowed until the next call. Local. DAMAGED
 * for a stream that is cut, has another CRC or length, or is followed by something else. */
enum status gunzip_next(struct gunzip *gunzip, const char **bytes, size_t *count);

#endif
