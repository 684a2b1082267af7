/* Words of a text as numbers, for measures that count what two texts have in common. */
#ifndef STAGES_EVALUATE_WORDS_H
#define STAGES_EVALUATE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* Zero-initialise. */
struct words {
  uint64_t *ids; /* owned: a hash of each word */
  size_t count, capacity;
};

/* Appends a word. Local. ENVIRONMENT when memory is out. */
enum status words_add(struct words *words, const char *bytes, size_t count);
void words_clear(struct words *words);
void words_free(struct words *words);

/* How many n-grams two texts have in common, each as often as in the one that has it less often.
 * Local. ENVIRONMENT when memory is out. */
enum status words_common(int64_t *common, const struct words *a, const struct words *b, size_t n);

/* The number of n-grams. Local. */
static inline int64_t words_grams(const struct words *words, size_t n) {
  return words->count >= n ? (int64_t)(words->count - n + 1) : 0;
}

/* Appends `bytes` in lower case: UTF-8, each character by itself; what is not UTF-8 as it is.
 * Local. ENVIRONMENT when memory is out. */
enum status words_lower(struct text *out, const char *bytes, size_t count);

#endif
