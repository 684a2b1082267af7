#include "stages/model/tape/param_spectral.h"

#include <assert.h>
#include <math.h>

#include "pipeline/base/bf16.h"

enum { ROUNDS = 40 };

static double load(const struct param *param, enum dtype dtype, int64_t index) {
  if (dtype == DTYPE_F64) return ((const double *)param->data)[index];
  if (dtype == DTYPE_F32) return (double)((const float *)param->data)[index];
  return (double)bf16_to_float(((const bf16 *)param->data)[index]);
}

static void multiply(const struct param *param, enum dtype dtype, double factor) {
  const int64_t count = param->rows * param->cols;
#pragma omp parallel for
  for (int64_t i = 0; i < count; i++) {
    const double value = factor * load(param, dtype, i);
    if (dtype == DTYPE_F64) ((double *)param->data)[i] = value;
    if (dtype == DTYPE_F32) ((float *)param->data)[i] = (float)value;
    if (dtype == DTYPE_BF16) ((bf16 *)param->data)[i] = bf16_from_float((float)value);
  }
}

/* u[rows] = A v. */
static void apply(double *u, const struct param *param, enum dtype dtype, const double *v) {
  const int64_t cols = param->cols;
#pragma omp parallel for
  for (int64_t i = 0; i < param->rows; i++) {
    double sum = 0;
    for (int64_t j = 0; j < cols; j++) sum += load(param, dtype, i * cols + j) * v[j];
    u[i] = sum;
  }
}

/* v[cols] = A' u; each thread sums columns of its own, down the rows. */
static void apply_transposed(double *v, const struct param *param, enum dtype dtype,
                             const double *u) {
  enum { COLUMNS = 64 };
  const int64_t cols = param->cols;
#pragma omp parallel for
  for (int64_t first = 0; first < cols; first += COLUMNS) {
    const int64_t end = first + COLUMNS < cols ? first + COLUMNS : cols;
    for (int64_t j = first; j < end; j++) v[j] = 0;
    for (int64_t i = 0; i < param->rows; i++)
      for (int64_t j = first; j < end; j++) v[j] += load(param, dtype, i * cols + j) * u[i];
  }
}

/* Divides a vector by its length, and returns that. */
static double normalise(double *v, int64_t count) {
  double square = 0;
  for (int64_t i = 0; i < count; i++) square += v[i] * v[i];
  const double length = sqrt(square);
  for (int64_t i = 0; length > 0 && i < count; i++) v[i] /= length;
  return length;
}

void param_spectral_scale(const struct param *param, enum dtype dtype, struct arena *arena) {
  assert(!param->sliced && !arena_is_measuring(arena));
  const size_t mark = arena_mark(arena);
  double *u = arena_take(arena, (size_t)param->rows * sizeof *u);
  double *v = arena_take(arena, (size_t)param->cols * sizeof *v);
  for (int64_t j = 0; j < param->cols; j++) v[j] = 1;
  double largest = 0;
  normalise(v, param->cols);
  for (int round = 0; round < ROUNDS; round++) {
    apply(u, param, dtype, v);
    largest = normalise(u, param->rows);
    apply_transposed(v, param, dtype, u);
    normalise(v, param->cols);
  }
  if (largest > 0) multiply(param, dtype, param->scale / largest);
  arena_reset(arena, mark);
}
