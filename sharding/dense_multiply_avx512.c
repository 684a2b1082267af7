#include <immintrin.h>

#include "sharding/dense_multiply.h"

enum { ROWS = 8, COLUMNS = 8 };

/* Multiply, then add: the same bits as the plain kernel, which rounds in between. */
static void tile(double *c, int64_t stride, const double *a, const double *b, int64_t k) {
  __m512d sums[ROWS];
  for (int i = 0; i < ROWS; i++) sums[i] = _mm512_loadu_pd(c + i * stride);
  for (int64_t p = 0; p < k; p++, a += ROWS, b += COLUMNS) {
    const __m512d right = _mm512_loadu_pd(b);
    for (int i = 0; i < ROWS; i++)
      sums[i] = _mm512_add_pd(sums[i], _mm512_mul_pd(_mm512_set1_pd(a[i]), right));
  }
  for (int i = 0; i < ROWS; i++) _mm512_storeu_pd(c + i * stride, sums[i]);
}

const struct dense_kernel dense_kernel_avx512 = {ROWS, COLUMNS, tile};
