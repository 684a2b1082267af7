#include "pipeline/base/subsequence.h"

#include <string.h>

/* Row by row of the usual table, of which one row is kept. */
int64_t subsequence_longest(int64_t *row, const uint64_t *a, size_t a_count, const uint64_t *b,
                            size_t b_count) {
  memset(row, 0, (b_count + 1) * sizeof *row);
  for (size_t i = 0; i < a_count; i++) {
    int64_t diagonal = 0;
    for (size_t j = 0; j < b_count; j++) {
      const int64_t above = row[j + 1], best = row[j] > above ? row[j] : above;
      row[j + 1] = a[i] == b[j] ? diagonal + 1 : best;
      diagonal = above;
    }
  }
  return row[b_count];
}
