/* Remembers the pieces of words. Two tables by the length of the word; an entry gives way to the
 * next word that falls on its slot, so that memory is fixed. What is remembered never changes a
 * result.
 */
#ifndef STAGES_TOKENIZE_WORD_CACHE_H
#define STAGES_TOKENIZE_WORD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pipeline/base/error.h"

enum { WORD_SHORT_BYTES = 15, WORD_SHORT_PIECES = 4, WORD_SHORT_SLOTS = 1 << 15 };
enum { WORD_LONG_BYTES = 47, WORD_LONG_PIECES = 16, WORD_LONG_SLOTS = 1 << 12 };

struct word_short {
  uint64_t key[2]; /* the word, zeros, and its length in the last byte */
  float limit;     /* as viterbi_result.limit */
  uint32_t count;
  int32_t ids[WORD_SHORT_PIECES];
  float scores[WORD_SHORT_PIECES];
  uint64_t unused;
};

struct word_long {
  uint64_t key[6];
  float limit;
  uint32_t count;
  int32_t ids[WORD_LONG_PIECES];
  float scores[WORD_LONG_PIECES];
};

struct word_cache {
  struct word_short *short_words; /* owned */
  struct word_long *long_words;   /* owned */
};

/* What a lookup gives: where the pieces are, or are to be put. */
struct word_entry {
  float *limit;
  uint32_t *count;
  int32_t *ids;
  float *scores;
  size_t room; /* pieces that fit */
  bool found;
};

/* Makes empty tables. Local. ENVIRONMENT when memory is out. */
enum status word_cache_open(struct word_cache *cache);
void word_cache_close(struct word_cache *cache);

/* The key of a word of at most WORD_SHORT_BYTES bytes. `readable` bytes may be read from `word` on.
 * Local. */
static inline void word_short_key(uint64_t key[2], const char *word, size_t count,
                                  size_t readable) {
  if (readable >= 16) {
    const unsigned low = count < 8 ? (unsigned)count : 8, high = (unsigned)count - low;
    memcpy(key, word, 16);
    key[0] &= low == 8 ? ~(uint64_t)0 : ((uint64_t)1 << (8 * low)) - 1;
    key[1] &= ((uint64_t)1 << (8 * high)) - 1;
  } else {
    key[0] = key[1] = 0;
    memcpy(key, word, count);
  }
  key[1] |= (uint64_t)count << 56;
}

/* The slot of a short word. It holds the word when both halves of the key are equal. Local. */
static inline struct word_short *word_cache_short(const struct word_cache *cache,
                                                  const uint64_t key[2]) {
  uint64_t mixed = (key[0] ^ (key[1] * 0x9e3779b97f4a7c15u)) * 0xd6e8feb86659fd93u;
  mixed ^= mixed >> 32;
  return &cache->short_words[(mixed * 0xd6e8feb86659fd93u) >> 49];
}

/* The slot of a longer word of at most WORD_LONG_BYTES bytes; what is not found is emptied and
 * given the word's key. Local. */
struct word_entry word_cache_long(const struct word_cache *cache, const char *word, size_t count);

#endif
