/* A few words that were found in a text, with their places in the cache already on the way from
 * memory: finding words and looking them up overlap.
 */
#ifndef STAGES_TOKENIZE_WORD_BATCH_H
#define STAGES_TOKENIZE_WORD_BATCH_H

#include "stages/tokenize/word_cache.h"

enum { WORD_BATCH_WORDS = 32 };

struct word_batch {
  size_t count;
  uint64_t keys[WORD_BATCH_WORDS][2];  /* of words of at most WORD_SHORT_BYTES bytes */
  const char *words[WORD_BATCH_WORDS]; /* borrowed from the text */
  size_t lengths[WORD_BATCH_WORDS];
};

/* Adds a word; the batch must not be full. `readable` bytes may be read from `word` on. Local. */
static inline void word_batch_add(struct word_batch *batch, const struct word_cache *cache,
                                  const char *word, size_t count, size_t readable) {
  const size_t at = batch->count++;
  batch->words[at] = word;
  batch->lengths[at] = count;
  if (count > WORD_SHORT_BYTES) return;
  word_cache_key(batch->keys[at], word, count, readable);
  __builtin_prefetch(word_cache_bucket(cache, batch->keys[at]));
}

#endif
