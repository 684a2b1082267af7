#include <string.h>

#include "pipeline/base/bf16.h"
#include "stages/model/kernels/product_tile.h"

static void widen_row(float *restrict to, const bf16 *restrict from, int64_t count) {
  for (int64_t j = 0; j < count; j++) to[j] = bf16_to_float(from[j]);
}

static void narrow_row(bf16 *restrict to, const float *restrict from, int64_t count) {
  for (int64_t j = 0; j < count; j++) to[j] = bf16_from_float(from[j]);
}

void product_copy_rows(void *to, enum dtype to_dtype, int64_t to_stride, const void *from,
                       enum dtype from_dtype, int64_t from_stride, int64_t rows, int64_t columns) {
  const size_t to_bytes = dtype_bytes(to_dtype), from_bytes = dtype_bytes(from_dtype);
  for (int64_t i = 0; i < rows; i++) {
    void *target = (char *)to + (size_t)(i * to_stride) * to_bytes;
    const void *source = (const char *)from + (size_t)(i * from_stride) * from_bytes;
    if (to_dtype == from_dtype)
      memcpy(target, source, (size_t)columns * to_bytes);
    else if (to_dtype == DTYPE_F32)
      widen_row(target, source, columns);
    else
      narrow_row(target, source, columns);
  }
}

void product_widen(float *to, const struct product_rows *rows) {
  const bf16 *from = rows->first;
#pragma omp parallel for
  for (int64_t i = 0; i < rows->count; i++)
    widen_row(to + i * rows->columns, from + i * rows->stride, rows->columns);
}

enum { BLOCK = 16 };

static float element(const void *from, enum dtype dtype, int64_t i) {
  return dtype == DTYPE_BF16 ? bf16_to_float(((const bf16 *)from)[i]) : ((const float *)from)[i];
}

/* Columns [j, j + columns) of the rows from `row` on become rows of `to`. */
static void transpose_block(float *to, int64_t to_stride, const struct product_rows *from,
                            enum dtype dtype, int64_t row, int64_t j) {
  const int64_t columns = from->columns - j < BLOCK ? from->columns - j : BLOCK;
  const int64_t rows = from->count - row < BLOCK ? from->count - row : BLOCK;
  float block[BLOCK][BLOCK];
  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c < columns; c++)
      block[i][c] = element(from->first, dtype, (row + i) * from->stride + j + c);
  for (int64_t c = 0; c < columns; c++)
    for (int64_t i = 0; i < rows; i++) to[(j + c) * to_stride + row + i] = block[i][c];
}

void product_transpose(float *to, int64_t to_stride, const struct product_rows *from,
                       enum dtype dtype) {
#pragma omp parallel for
  for (int64_t j = 0; j < from->columns; j += BLOCK)
    for (int64_t row = 0; row < from->count; row += BLOCK)
      transpose_block(to, to_stride, from, dtype, row, j);
}
