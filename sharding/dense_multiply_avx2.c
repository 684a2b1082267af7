#include <immintrin.h>

#include "sharding/dense_multiply.h"

enum { ROWS = 4, COLUMNS = 8 };

/* Multiply, then add: the same bits as the plain kernel, which rounds in between. */
static void tile(double *c, int64_t stride, const double *a, const double *b, int64_t k) {
  __m256d sums[ROWS][2];
  for (int i = 0; i < ROWS; i++) {
    sums[i][0] = _mm256_loadu_pd(c + i * stride);
    sums[i][1] = _mm256_loadu_pd(c + i * stride + 4);
  }
  for (int64_t p = 0; p < k; p++, a += ROWS, b += COLUMNS) {
    const __m256d low = _mm256_loadu_pd(b);
    const __m256d high = _mm256_loadu_pd(b + 4);
    for (int i = 0; i < ROWS; i++) {
      const __m256d left = _mm256_broadcast_sd(a + i);
      sums[i][0] = _mm256_add_pd(sums[i][0], _mm256_mul_pd(left, low));
      sums[i][1] = _mm256_add_pd(sums[i][1], _mm256_mul_pd(left, high));
    }
  }
  for (int i = 0; i < ROWS; i++) {
    _mm256_storeu_pd(c + i * stride, sums[i][0]);
    _mm256_storeu_pd(c + i * stride + 4, sums[i][1]);
  }
}

const struct dense_kernel dense_kernel_avx2 = {ROWS, COLUMNS, tile};
