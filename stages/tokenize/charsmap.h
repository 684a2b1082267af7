/* The normaliser of a SentencePiece model: replaces the longest known prefix by its normal form,
 * again and again (rules such as NFKC, compiled into the model: a double-array trie of the keys in
 * the layout of Darts-clone, then the replacements, each ended by a zero byte).
 */
#ifndef STAGES_TOKENIZE_CHARSMAP_H
#define STAGES_TOKENIZE_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

/* What a byte means at the start of a character. */
enum charsmap_class {
  CHARSMAP_OTHER, /* anything: ask charsmap_next */
  CHARSMAP_PLAIN, /* ASCII that stays as it is unless a byte that is not ASCII follows */
  CHARSMAP_SPACE  /* ASCII that becomes one space unless a byte that is not ASCII follows */
};

struct charsmap {
  uint32_t *units; /* owned; the trie */
  size_t unit_count;
  const char *replacements; /* borrowed from the model */
  size_t replacement_bytes;
  uint8_t classes[256]; /* enum charsmap_class */
  bool printable_plain; /* every byte from '!' to '~' is PLAIN */
};

/* Reads a table; an empty one replaces nothing. Local. DAMAGED when it is not such a table. */
enum status charsmap_open(struct charsmap *map, const char *bytes, size_t count);
void charsmap_close(struct charsmap *map);

/* The normal form of the longest prefix of `bytes` (not empty): *length bytes of the input become
 * *result_count bytes at the returned place. A byte that is not UTF-8 becomes U+FFFD. Borrowed.
 * Local. */
const char *charsmap_next(const struct charsmap *map, const char *bytes, size_t count,
                          size_t *length, size_t *result_count);

#endif
