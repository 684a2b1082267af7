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
  const size_t positions = (size_t)rows.positions;
  int32_t *sorted = malloc(positions * sizeof *sorted);
  CHECK(sorted, STATUS_ENVIRONMENT, "out of memory: a row of %zu tokens", positions);
  *entropy = 0;
  for (int64_t row = 0; row < rows.count; row++) {
    memcpy(sorted, rows.tokens + row * rows.positions, positions * sizeof *sorted);
    qsort(sorted, positions, sizeof *sorted, compare_tokens);
    *entropy += sorted_entropy(sorted, rows.positions) / (double)rows.count;
  }
  free(sorted);
  return STATUS_OK;
}

enum status diversity_distinct(double *distinct, struct diversity_rows rows, int64_t n) {
  *distinct = 0;
  if (rows.positions < n || rows.count == 0) return STATUS_OK;
  const int64_t each = rows.positions - n + 1;
  const size_t total = (size_t)(rows.count * each);
  uint64_t *hashes = malloc(total * sizeof *hashes);
  CHECK(hashes, STATUS_ENVIRONMENT, "out of memory: %zu n-grams", total);
  for (int64_t row = 0; row < rows.count; row++)
    for (int64_t i = 0; i < each; i++)
      hashes[row * each + i] =
          hash_bytes(rows.tokens + row * rows.positions + i, (size_t)n * sizeof(int32_t));
  qsort(hashes, total, sizeof *hashes, compare_hashes);
  size_t different = 1;
  for (size_t i = 1; i < total; i++) different += hashes[i] != hashes[i - 1];
  *distinct = (double)different / (double)total;
  free(hashes);
  return STATUS_OK;
}
