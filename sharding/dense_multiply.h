/* The product of matrices in double that the dense routines are built of. Every element of the
 * result is added up in the order of k, one product after the other, whatever the blocks, the
 * threads or the instruction set: the bits depend on nothing but the numbers. Only dense*.c include
 * this.
 */
#ifndef SHARDING_DENSE_MULTIPLY_H
#define SHARDING_DENSE_MULTIPLY_H

#include <stdbool.h>
#include <stdint.h>

/* Element (i, j) is values[i * row_stride + j * column_stride]. */
struct dense_view {
  const double *values; /* borrowed */
  int64_t row_stride, column_stride;
};

struct dense_sizes {
  int64_t m, n, k;
  bool lower; /* only what is on or below the diagonal of c is needed */
};

/* c[m][n] (rows `stride` apart) += sign * a[m][k] b[k][n], sign = 1 or -1. Local. */
void dense_multiply(double *c, int64_t stride, struct dense_view a, struct dense_view b,
                    const struct dense_sizes *sizes, double sign);

/* A tile of c (rows `stride` apart): c[i][j] += sum over k of a[k][i] b[k][j], from packed panels
 * of `rows` and `columns` values for each k. */
struct dense_kernel {
  int64_t rows, columns;
  void (*tile)(double *c, int64_t stride, const double *a, const double *b, int64_t k);
};

enum { DENSE_TILE_ROWS_MAX = 8, DENSE_TILE_COLUMNS_MAX = 8 };

extern const struct dense_kernel dense_kernel_plain;
extern const struct dense_kernel dense_kernel_avx2;
extern const struct dense_kernel dense_kernel_avx512;

/* The fastest kernel that this processor runs; the result is the same with each. Local. */
const struct dense_kernel *dense_kernel_pick(void);

/* As dense_multiply with a given kernel. Local. */
void dense_multiply_with(const struct dense_kernel *kernel, double *c, int64_t stride,
                         struct dense_view a, struct dense_view b, const struct dense_sizes *sizes,
                         double sign);

#endif
