/* Remembers the pieces of words: short words of up to three pieces in buckets of one cache line,
 * all others in a second table. Entries give way to new ones, so that memory is fixed. What is
 * remembered never changes a result.
 */
#ifndef STAGES_TOKENIZE_WORD_CACHE_H
#define STAGES_TOKENIZE_WORD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pipeline/base/error.h"

enum { WORD_SHORT_BYTES = 15, WORD_SHORT_PIECES = 3, WORD_SHORT_BITS = 16 };
enum { WORD_ID_BITS = 21 };
enum { WORD_LONG_BYTES = 47, WORD_LONG_PIECES = 16, WORD_LONG_BITS = 13 };

struct word_short {
  uint64_t key[2]; /* the word, zeros, and its length in the last byte; 0: empty */
  uint64_t ids;    /* WORD_ID_BITS each, the first one lowest; unless `beside` */
  float limit;     /* as viterbi_result.limit */
  uint16_t count;
  uint16_t beside; /* 1: the pieces are in word_cache.beside, at the number of this word */
};

struct word_bucket {
  struct word_short words[2]; /* the newer one first */
};

struct word_list {
  int32_t ids[WORD_LONG_PIECES];
};

struct word_long {
  uint64_t key[6];
  float limit;
  uint32_t count;
  int32_t ids[WORD_LONG_PIECES];
};

struct word_cache {
  struct word_bucket *buckets;  /* owned */
  struct word_list *beside;     /* owned; of each place in the buckets */
  struct word_long *long_words; /* owned */
};

/* A result to remember. */
struct word_pieces {
  const int32_t *ids; /* borrowed */
  size_t count;       /* at most WORD_LONG_PIECES */
  float limit;
  bool beside; /* keep them beside, so that the reader looks at them one by one */
};

/* Makes empty tables. Local. ENVIRONMENT when memory is out. */
enum status word_cache_open(struct word_cache *cache);
void word_cache_close(struct word_cache *cache);

/* The bytes of a word among the 16 that begin there, for each length. */
extern const uint64_t word_cache_masks[WORD_SHORT_BYTES + 1][2];

/* The key of a word of at most WORD_SHORT_BYTES bytes. `readable` bytes may be read from `word` on.
 * Local. */
static inline void word_cache_key(uint64_t key[2], const char *word, size_t count,
                                  size_t readable) {
  if (readable >= 16) {
    memcpy(key, word, 16);
    key[0] &= word_cache_masks[count][0];
    key[1] &= word_cache_masks[count][1];
  } else {
    key[0] = key[1] = 0;
    memcpy(key, word, count);
  }
  key[1] |= (uint64_t)count << 56;
}

static inline struct word_bucket *word_cache_bucket(const struct word_cache *cache,
                                                    const uint64_t key[2]) {
  uint64_t mixed = (key[0] ^ (key[1] * 0x9e3779b97f4a7c15u)) * 0xd6e8feb86659fd93u;
  mixed ^= mixed >> 32;
  return &cache->buckets[(mixed * 0xd6e8feb86659fd93u) >> (64 - WORD_SHORT_BITS)];
}

/* The place in a bucket that may hold a word: without a branch, since either may be asked for. */
static inline const struct word_short *word_bucket_place(const struct word_bucket *bucket,
                                                         const uint64_t key[2]) {
  return &bucket->words[((bucket->words[0].key[0] ^ key[0]) | (bucket->words[0].key[1] ^ key[1])) !=
                        0];
}

static inline bool word_short_is(const struct word_short *word, const uint64_t key[2]) {
  return ((word->key[0] ^ key[0]) | (word->key[1] ^ key[1])) == 0;
}

/* What is remembered of a short word, or NULL. Borrowed until the next put. Local. */
static inline const struct word_short *word_cache_find(const struct word_cache *cache,
                                                       const uint64_t key[2]) {
  const struct word_short *word = word_bucket_place(word_cache_bucket(cache, key), key);
  return word_short_is(word, key) ? word : NULL;
}

/* Writes the ids of a short word that is not marked `beside` to `ids`, which has room for
 * WORD_SHORT_PIECES; returns how many count. Local. */
static inline size_t word_short_ids(int32_t *ids, const struct word_short *known) {
  const uint64_t mask = ((uint64_t)1 << WORD_ID_BITS) - 1;
  ids[0] = (int32_t)(known->ids & mask);
  ids[1] = (int32_t)(known->ids >> WORD_ID_BITS & mask);
  ids[2] = (int32_t)(known->ids >> (2 * WORD_ID_BITS));
  return known->count;
}

/* The pieces of a short word that is marked `beside`. Borrowed until the next put. Local. */
static inline const int32_t *word_cache_beside(const struct word_cache *cache,
                                               const struct word_short *known) {
  return cache->beside[known - cache->buckets->words].ids;
}

/* Remembers a short word. Local. */
void word_cache_put(struct word_cache *cache, const uint64_t key[2], struct word_pieces pieces);

/* As find and put, for longer words of at most WORD_LONG_BYTES bytes. */
const struct word_long *word_cache_find_long(const struct word_cache *cache, const char *word,
                                             size_t count);
void word_cache_put_long(struct word_cache *cache, const char *word, size_t count,
                         struct word_pieces pieces);

#endif
