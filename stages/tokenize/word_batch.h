/* A few words that were found in a text, with their places in the cache already on the way from
 * memory: finding words and looking them up overlap.
 */
#ifndef STAGES_TOKENIZE_WORD_BATCH_H
#define STAGES_TOKENIZE_WORD_BATCH_H

#include "stages/tokenize/word_cache.h"

/* A batch takes words while there is room for those of another window (ascii_masks.h). */
enum { WORD_BATCH_WORDS = 128, WORD_BATCH_FULL = WORD_BATCH_WORDS - 64 };

struct word_batch {
  size_t count;
  const char *words[WORD_BATCH_WORDS]; /* borrowed from the text */
  size_t lengths[WORD_BATCH_WORDS];
  uint64_t keys[WORD_BATCH_WORDS][2]; /* of no word where it is longer than WORD_SHORT_BYTES */
  const struct word_bucket *buckets[WORD_BATCH_WORDS];
};

/* Adds a word; the batch must not be full. Local. */
static inline void word_batch_add(struct word_batch *batch, const char *word, size_t count) {
  batch->words[batch->count] = word;
  batch->lengths[batch->count++] = count;
}

/* Adds the words that the window at `bytes` is cut into: from its start to the first bit of
 * `starts`, and so on. Returns where the last one ends. Local. */
static inline size_t word_batch_cut(struct word_batch *batch, const char *bytes, uint64_t starts) {
  size_t at = 0;
  for (; starts; starts &= starts - 1) {
    const size_t next = (size_t)__builtin_ctzll(starts);
    word_batch_add(batch, bytes + at, next - at);
    at = next;
  }
  return at;
}

/* Makes the keys of all words and fetches their places in the cache. Bytes from the first word to
 * `end` may be read. Local. */
static inline void word_batch_seek(struct word_batch *batch, const struct word_cache *cache,
                                   const char *end) {
  for (size_t i = 0; i < batch->count; i++) {
    const bool is_long = batch->lengths[i] > WORD_SHORT_BYTES;
    word_cache_key(batch->keys[i], batch->words[i], is_long ? 0 : batch->lengths[i],
                   (size_t)(end - batch->words[i]));
    batch->keys[i][1] |= is_long ? UINT64_MAX : 0;
    batch->buckets[i] = word_cache_bucket(cache, batch->keys[i]);
    __builtin_prefetch(batch->buckets[i]);
  }
}

#endif
