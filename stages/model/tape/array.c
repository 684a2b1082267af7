#include "stages/model/tape/array.h"

#include <string.h>

static const unsigned char *place(const void *base, int64_t index, enum dtype dtype) {
  return base ? (const unsigned char *)base + (size_t)index * dtype_bytes(dtype) : NULL;
}

void *array_at(const struct tape *tape, const void *elements, int64_t index) {
  return (void *)place(elements, index, tape->kernels->element);
}

void *array_sum_at(const struct tape *tape, const void *sums, int64_t index) {
  return (void *)place(sums, index, tape->kernels->sum);
}

void *array_elements(struct tape *tape, int64_t count) {
  return arena_take(tape->arena, (size_t)count * dtype_bytes(tape->kernels->element));
}

void *array_sums(struct tape *tape, int64_t count) {
  return arena_take(tape->arena, (size_t)count * dtype_bytes(tape->kernels->sum));
}

void *array_sums_zeroed(struct tape *tape, int64_t count) {
  return arena_take_zeroed(tape->arena, (size_t)count * dtype_bytes(tape->kernels->sum));
}

void array_clear_sums(const struct tape *tape, void *sums, int64_t count) {
  if (sums) memset(sums, 0, (size_t)count * dtype_bytes(tape->kernels->sum));
}

static void put_sum(const struct tape *tape, void *sums, int64_t index, double value) {
  if (tape->kernels->sum == DTYPE_F64)
    ((double *)sums)[index] = value;
  else
    ((float *)sums)[index] = (float)value;
}

void array_put_sums(const struct tape *tape, void *sums, const double *values, int64_t count) {
  for (int64_t i = 0; sums && i < count; i++) put_sum(tape, sums, i, values[i]);
}

void array_put_float_sums(const struct tape *tape, void *sums, const float *values, int64_t count) {
  for (int64_t i = 0; sums && i < count; i++) put_sum(tape, sums, i, (double)values[i]);
}

void array_get_sums(const struct tape *tape, double *values, const void *sums, int64_t count) {
  const bool wide = tape->kernels->sum == DTYPE_F64;
  for (int64_t i = 0; sums && i < count; i++)
    values[i] = wide ? ((const double *)sums)[i] : (double)((const float *)sums)[i];
}

void array_add_gradient(struct tape *tape, struct value *value, const void *dy, int64_t dy_stride) {
  bool add;
  if (!value->needs_gradient) return;
  void *gradient = tape_gradient(tape, value, &add);
  tape->kernels->copy_rows(gradient, dy, value->rows, value->cols, value->stride, dy_stride, add);
}
