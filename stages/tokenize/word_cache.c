#include "stages/tokenize/word_cache.h"

#include <stdlib.h>

_Static_assert(sizeof(struct word_bucket) == 64, "one cache line");

#define ALL (~(uint64_t)0)
#define LOW(bytes) (((uint64_t)1 << (8 * (bytes))) - 1)

const uint64_t word_cache_masks[WORD_SHORT_BYTES + 1][2] = {
    {0, 0},        {LOW(1), 0},   {LOW(2), 0},   {LOW(3), 0},   {LOW(4), 0},   {LOW(5), 0},
    {LOW(6), 0},   {LOW(7), 0},   {ALL, 0},      {ALL, LOW(1)}, {ALL, LOW(2)}, {ALL, LOW(3)},
    {ALL, LOW(4)}, {ALL, LOW(5)}, {ALL, LOW(6)}, {ALL, LOW(7)}};

enum status word_cache_open(struct word_cache *cache) {
  const size_t bytes = sizeof *cache->buckets << WORD_SHORT_BITS;
  cache->buckets = aligned_alloc(sizeof *cache->buckets, bytes);
  cache->long_words = calloc((size_t)1 << WORD_LONG_BITS, sizeof *cache->long_words);
  cache->beside = calloc((size_t)2 << WORD_SHORT_BITS, sizeof *cache->beside);
  CHECK(cache->buckets && cache->beside && cache->long_words, STATUS_ENVIRONMENT,
        "out of memory: a cache of words");
  memset(cache->buckets, 0, bytes);
  return STATUS_OK;
}

void word_cache_close(struct word_cache *cache) {
  free(cache->buckets);
  free(cache->beside);
  free(cache->long_words);
  *cache = (struct word_cache){0};
}

static bool fits(const struct word_pieces *pieces) {
  if (pieces->beside || pieces->count > WORD_SHORT_PIECES) return false;
  for (size_t i = 0; i < pieces->count; i++)
    if (pieces->ids[i] >> WORD_ID_BITS) return false;
  return true;
}

/* Makes the first place of a bucket free. */
static void demote(struct word_cache *cache, struct word_short *words) {
  const size_t place = (size_t)(words - cache->buckets->words);
  words[1] = words[0];
  if (words[0].beside) cache->beside[place + 1] = cache->beside[place];
}

void word_cache_put(struct word_cache *cache, const uint64_t key[2], struct word_pieces pieces) {
  struct word_short *words = word_cache_bucket(cache, key)->words;
  if (words[0].key[0] != key[0] || words[0].key[1] != key[1]) demote(cache, words);
  words[0] = (struct word_short){.key = {key[0], key[1]},
                                 .limit = pieces.limit,
                                 .count = (uint16_t)pieces.count,
                                 .beside = !fits(&pieces)};
  if (words[0].beside)
    memcpy(cache->beside[words - cache->buckets->words].ids, pieces.ids,
           pieces.count * sizeof *pieces.ids);
  for (size_t i = pieces.count; i > 0 && !words[0].beside; i--)
    words[0].ids = words[0].ids << WORD_ID_BITS | (uint64_t)pieces.ids[i - 1];
}

static struct word_long *long_slot(const struct word_cache *cache, uint64_t key[6],
                                   const char *word, size_t count) {
  uint64_t mixed = count;
  memset(key, 0, 6 * sizeof *key);
  memcpy(key, word, count);
  key[5] |= (uint64_t)count << 56;
  for (int i = 0; i < 6; i++) {
    mixed = (mixed ^ key[i]) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 29;
  }
  return &cache->long_words[mixed >> (64 - WORD_LONG_BITS)];
}

const struct word_long *word_cache_find_long(const struct word_cache *cache, const char *word,
                                             size_t count) {
  uint64_t key[6];
  const struct word_long *slot = long_slot(cache, key, word, count);
  return memcmp(slot->key, key, sizeof key) == 0 ? slot : NULL;
}

void word_cache_put_long(struct word_cache *cache, const char *word, size_t count,
                         struct word_pieces pieces) {
  uint64_t key[6];
  struct word_long *slot = long_slot(cache, key, word, count);
  memcpy(slot->key, key, sizeof key);
  memcpy(slot->ids, pieces.ids, pieces.count * sizeof *pieces.ids);
  slot->count = (uint32_t)pieces.count;
  slot->limit = pieces.limit;
}
