#include "sharding/add.h"

#include <assert.h>

#include "pipeline/base/bf16.h"

static void add_floats(float *restrict sum, const float *restrict values, int64_t count) {
  for (int64_t i = 0; i < count; i++) sum[i] += values[i];
}

static void add_doubles(double *restrict sum, const double *restrict values, int64_t count) {
  for (int64_t i = 0; i < count; i++) sum[i] += values[i];
}

static void add_bf16(bf16 *restrict sum, const bf16 *restrict values, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    sum[i] = bf16_from_float(bf16_to_float(sum[i]) + bf16_to_float(values[i]));
}

void add_arrays(void *sum, const void *values, int64_t count, enum dtype dtype) {
  assert(dtype == DTYPE_F32 || dtype == DTYPE_F64 || dtype == DTYPE_BF16);
  if (dtype == DTYPE_F32) add_floats(sum, values, count);
  if (dtype == DTYPE_F64) add_doubles(sum, values, count);
  if (dtype == DTYPE_BF16) add_bf16(sum, values, count);
}

void add_rounded(uint16_t *restrict sum, const float *restrict values, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    sum[i] = bf16_from_float(bf16_to_float(sum[i]) + bf16_to_float(bf16_from_float(values[i])));
}

void add_round(uint16_t *restrict rounded, const float *restrict values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rounded[i] = bf16_from_float(values[i]);
}

void add_widen(float *restrict values, const uint16_t *restrict rounded, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i] = bf16_to_float(rounded[i]);
}
