#include "stages/evaluate/diversity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/hash.h"

static int compare_tokens(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static int compare_hashes(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Entropy of the unigrams of one sorted row. */
static double sorted_entropy(const int32_t *sorted, int64_t count) {
  double entropy = 0;
  for (int64_t i = 0; i < count;) {
    int64_t end = i;
    while (end < count && sorted[end] == sorted[i]) end++;
    const double share = (double)(end - i) / (double)count;
    entropy -= share * log(share);
    i = end;
  }
  return entropy;
}

enum status diversity_entropy(double *entropy, struct diversity_rows rows) {
  int32_t *sorted = malloc((size_t)rows.positions * sizeof *sorted);
  CHECK(sorted, STATUS_ENVIRONMENT, "out of memory: a row of %lld tokens",
        (long long)rows.positions);
  *entropy = 0;
  for (int64_t row = 0; row < rows.count; row++) {
    const size_t length = (size_t)rows.lengths[row];
    memcpy(sorted, rows.tokens + row * rows.positions, length * sizeof *sorted);
    qsort(sorted, length, sizeof *sorted, compare_tokens);
    *entropy += sorted_entropy(sorted, (int64_t)length) / (double)rows.count;
  }
  free(sorted);
  return STATUS_OK;
}

/* Hashes of the n-grams of all rows; returns their number. */
static size_t hash_ngrams(uint64_t *hashes, struct diversity_rows rows, int64_t n) {
  size_t count = 0;
  for (int64_t row = 0; row < rows.count; row++)
    for (int64_t i = 0; i + n <= rows.lengths[row]; i++)
      hashes[count++] =
          hash_bytes(rows.tokens + row * rows.positions + i, (size_t)n * sizeof(int32_t));
  return count;
}

enum status diversity_distinct(double *distinct, struct diversity_rows rows, int64_t n) {
  const size_t most = (size_t)(rows.count * rows.positions);
  uint64_t *hashes = malloc((most > 0 ? most : 1) * sizeof *hashes);
  CHECK(hashes, STATUS_ENVIRONMENT, "out of memory: %zu n-grams", most);
  const size_t total = hash_ngrams(hashes, rows, n);
  qsort(hashes, total, sizeof *hashes, compare_hashes);
  size_t different = total > 0;
  for (size_t i = 1; i < total; i++) different += hashes[i] != hashes[i - 1];
  *distinct = total > 0 ? (double)different / (double)total : 0;
  free(hashes);
  return STATUS_OK;
}
