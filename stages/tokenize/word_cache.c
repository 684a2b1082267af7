#include "stages/tokenize/word_cache.h"

#include <stdlib.h>

#include "pipeline/base/hash.h"

_Static_assert(WORD_SHORT_SLOTS == 1 << (64 - 49), "word_cache_short takes the 15 highest bits");
_Static_assert(sizeof(struct word_short) == 64, "one cache line");

enum status word_cache_open(struct word_cache *cache) {
  cache->short_words = calloc(WORD_SHORT_SLOTS, sizeof *cache->short_words);
  cache->long_words = calloc(WORD_LONG_SLOTS, sizeof *cache->long_words);
  CHECK(cache->short_words && cache->long_words, STATUS_ENVIRONMENT,
        "out of memory: a cache of words");
  return STATUS_OK;
}

void word_cache_close(struct word_cache *cache) {
  free(cache->short_words);
  free(cache->long_words);
  *cache = (struct word_cache){0};
}

struct word_entry word_cache_long(const struct word_cache *cache, const char *word, size_t count) {
  uint64_t key[6] = {0};
  memcpy(key, word, count);
  key[5] |= (uint64_t)count << 56;
  struct word_long *slot = &cache->long_words[hash_bytes(key, sizeof key) % WORD_LONG_SLOTS];
  const bool found = memcmp(slot->key, key, sizeof key) == 0;
  if (!found) {
    memcpy(slot->key, key, sizeof key);
    slot->count = 0;
  }
  return (struct word_entry){&slot->limit, &slot->count,     slot->ids,
                             slot->scores, WORD_LONG_PIECES, found && slot->count};
}
