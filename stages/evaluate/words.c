#include "stages/evaluate/words.h"

#include <stdbool.h>
#include <stdlib.h>

#include "pipeline/base/hash.h"

enum { FIRST_CAPACITY = 64 };

enum status words_add(struct words *words, const char *bytes, size_t count) {
  if (words->count == words->capacity) {
    const size_t capacity = words->capacity ? 2 * words->capacity : FIRST_CAPACITY;
    uint64_t *ids = realloc(words->ids, capacity * sizeof *ids);
    CHECK(ids, STATUS_ENVIRONMENT, "out of memory: %zu words", capacity);
    words->ids = ids;
    words->capacity = capacity;
  }
  words->ids[words->count++] = hash_bytes(bytes, count);
  return STATUS_OK;
}

void words_clear(struct words *words) {
  words->count = 0;
}

void words_free(struct words *words) {
  free(words->ids);
  *words = (struct words){0};
}

static int compare(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void sort_grams(uint64_t *grams, const struct words *words, size_t n) {
  const size_t count = (size_t)words_grams(words, n);
  for (size_t i = 0; i < count; i++) grams[i] = hash_bytes(words->ids + i, n * sizeof *grams);
  qsort(grams, count, sizeof *grams, compare);
}

static int64_t count_common(const uint64_t *a, int64_t a_count, const uint64_t *b,
                            int64_t b_count) {
  int64_t i = 0, j = 0, common = 0;
  while (i < a_count && j < b_count) {
    if (a[i] == b[j]) common++;
    const bool next_a = a[i] <= b[j], next_b = b[j] <= a[i];
    i += next_a;
    j += next_b;
  }
  return common;
}

enum status words_common(int64_t *common, const struct words *a, const struct words *b, size_t n) {
  const int64_t a_count = words_grams(a, n), b_count = words_grams(b, n);
  uint64_t *grams = malloc((size_t)(a_count + b_count + 1) * sizeof *grams);
  CHECK(grams, STATUS_ENVIRONMENT, "out of memory: n-grams of %zu words", a->count + b->count);
  sort_grams(grams, a, n);
  sort_grams(grams + a_count, b, n);
  *common = count_common(grams, a_count, grams + a_count, b_count);
  free(grams);
  return STATUS_OK;
}
