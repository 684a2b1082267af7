/* Matrix products of any shape: in tiles of oneDNN, or bf16 in those of the processor where it has
 * them, shared out over the threads.
 *
 * The sum over k of an element is made by one thread in an order that depends on the shape alone:
 * results have the same bits for any number of threads. Where `a` is read along its rows, a row of
 * the result also has the same bits whatever rows are around it.
 */
#ifndef STAGES_MODEL_KERNELS_PRODUCT_H
#define STAGES_MODEL_KERNELS_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/dtype.h"

/* c[m, n] = or += a[m, k] b[k, n] + bias[n]. Strides in elements; one of each pair is 1. With a
 * transposed `a` (a_row = 1), b lies along its rows, c is F32, and there is no bias. */
struct product {
  void *c;
  const void *a, *b;
  const void *bias; /* F32, or NULL */
  int64_t m, n, k;
  int64_t c_row;
  int64_t a_row, a_column;
  int64_t b_row, b_column;
  enum dtype input;  /* of a and b: F32 or BF16 */
  enum dtype output; /* of c: F32, or that of the inputs */
  bool add;
};

/* Computes the product with sums in F32; nothing when a size is 0. Call outside of parallel
 * regions. Local. */
void product_run(const struct product *product);

/* Whether bf16 is multiplied in the processor's tiles: where it has them, unless the library is
 * held to an older instruction set (DNNL_MAX_CPU_ISA), and we with it. Local. */
bool product_uses_tiles(void);

/* Returns working memory and made products. Local. */
void product_close(void);

#endif
