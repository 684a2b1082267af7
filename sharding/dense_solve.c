#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sharding/dense.h"
#include "sharding/dense_multiply.h"

enum { BLOCK = 64, COLUMNS = 128 };

static int64_t block_size(int64_t first, int64_t n) {
  return n - first < BLOCK ? n - first : BLOCK;
}

static void add_jitter(double *a, int64_t n, double jitter) {
  double mean = 0;
  if (jitter == 0) return;
  for (int64_t i = 0; i < n; i++) mean += a[i * n + i];
  for (int64_t i = 0; i < n; i++) a[i * n + i] += jitter * mean / (double)n;
}

/* Factors the diagonal block at `first`, whose left neighbours have been taken off. */
static enum status factor_block(double *a, int64_t n, int64_t first, int64_t size) {
  for (int64_t j = first; j < first + size; j++) {
    double pivot = a[j * n + j];
    for (int64_t k = first; k < j; k++) pivot -= a[j * n + k] * a[j * n + k];
    CHECK(pivot > 0 && isfinite(pivot), STATUS_NUMERIC,
          "Cholesky: pivot %" PRId64 " of %" PRId64
          " is %g; the matrix is not positive definite (raise the jitter)",
          j, n, pivot);
    a[j * n + j] = sqrt(pivot);
    for (int64_t i = j + 1; i < first + size; i++) {
      double sum = a[i * n + j];
      for (int64_t k = first; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = sum / a[j * n + j];
    }
  }
  return STATUS_OK;
}

/* Rows below the diagonal block: x L' = a, row by row. */
static void solve_below(double *a, int64_t n, int64_t first, int64_t size) {
#pragma omp parallel for if (n - first > INT64_C(4) * BLOCK)
  for (int64_t i = first + size; i < n; i++)
    for (int64_t j = first; j < first + size; j++) {
      double sum = a[i * n + j];
      for (int64_t k = first; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = sum / a[j * n + j];
    }
}

enum status dense_cholesky(double *a, int64_t n, double jitter) {
  add_jitter(a, n, jitter);
  for (int64_t k = 0; k < n; k += BLOCK) {
    const int64_t size = block_size(k, n);
    const struct dense_sizes sizes = {n - k, size, k, false};
    const struct dense_view left = {a + k * n, n, 1};
    const struct dense_view right = {a + k * n, 1, n};
    dense_multiply(a + k * n + k, n, left, right, &sizes, -1);
    TRY(factor_block(a, n, k, size));
    solve_below(a, n, k, size);
  }
  for (int64_t i = 0; i < n; i++) memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *a);
  return STATUS_OK;
}

/* Some columns of x, [n] rows `stride` apart. */
struct columns {
  double *x;
  int64_t stride, count;
};

static void scale(double *x, int64_t count, double factor) {
  for (int64_t c = 0; c < count; c++) x[c] /= factor;
}

static void subtract(double *restrict x, const double *restrict other, int64_t count,
                     double factor) {
  for (int64_t c = 0; c < count; c++) x[c] -= factor * other[c];
}

static void solve_columns(const double *factor, struct columns s, int64_t n) {
  for (int64_t k = 0; k < n; k += BLOCK) {
    const int64_t size = block_size(k, n);
    const struct dense_sizes sizes = {size, s.count, k, false};
    dense_multiply(s.x + k * s.stride, s.stride, (struct dense_view){factor + k * n, n, 1},
                   (struct dense_view){s.x, s.stride, 1}, &sizes, -1);
    for (int64_t i = k; i < k + size; i++) {
      double *row = s.x + i * s.stride;
      for (int64_t j = k; j < i; j++) subtract(row, s.x + j * s.stride, s.count, factor[i * n + j]);
      scale(row, s.count, factor[i * n + i]);
    }
  }
}

static void solve_columns_transposed(const double *factor, struct columns s, int64_t n) {
  for (int64_t k = (n - 1) / BLOCK * BLOCK; k >= 0; k -= BLOCK) {
    const int64_t next = k + block_size(k, n);
    const struct dense_sizes sizes = {next - k, s.count, n - next, false};
    dense_multiply(s.x + k * s.stride, s.stride, (struct dense_view){factor + next * n + k, 1, n},
                   (struct dense_view){s.x + next * s.stride, s.stride, 1}, &sizes, -1);
    for (int64_t i = next - 1; i >= k; i--) {
      double *row = s.x + i * s.stride;
      for (int64_t j = i + 1; j < next; j++)
        subtract(row, s.x + j * s.stride, s.count, factor[j * n + i]);
      scale(row, s.count, factor[i * n + i]);
    }
  }
}

static struct columns columns_at(double *x, int64_t m, int64_t first) {
  return (struct columns){x + first, m, m - first < COLUMNS ? m - first : COLUMNS};
}

/* Right-hand sides do not see one another: threads share them out. */
void dense_solve_lower(const double *factor, double *x, int64_t n, int64_t m) {
#pragma omp parallel for schedule(dynamic)
  for (int64_t c = 0; c < m; c += COLUMNS) solve_columns(factor, columns_at(x, m, c), n);
}

void dense_solve_lower_transposed(const double *factor, double *x, int64_t n, int64_t m) {
#pragma omp parallel for schedule(dynamic)
  for (int64_t c = 0; c < m; c += COLUMNS) solve_columns_transposed(factor, columns_at(x, m, c), n);
}

void dense_solve(const double *factor, double *x, int64_t n, int64_t m) {
  dense_solve_lower(factor, x, n, m);
  dense_solve_lower_transposed(factor, x, n, m);
}
