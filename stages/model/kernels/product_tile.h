/* What both ways of cutting a product share. */
#ifndef STAGES_MODEL_KERNELS_PRODUCT_TILE_H
#define STAGES_MODEL_KERNELS_PRODUCT_TILE_H

#include "stages/model/kernels/onednn.h"
#include "stages/model/kernels/product.h"
#include "stages/model/kernels/scratch.h"

/* A dimension cut into pieces of one size and a rest. */
struct product_cut {
  int64_t size, count, last;
};

/* Pieces of nearly one size, a multiple of `unit`, at most `limit` long; at least `wanted` many
 * where that leaves pieces of `unit`. Local. */
struct product_cut product_tile_cut(int64_t total, int64_t unit, int64_t limit, int64_t wanted);

/* The shape of m rows, n columns and k terms of a product. Local. */
struct onednn_shape product_tile_shape(const struct product *product, int64_t m, int64_t n,
                                       int64_t k);

/* Runs a tile through the library, or by plain loops where the library refused (tile is NULL).
 * Local. */
void product_tile_run(const struct onednn_product *tile, const struct onednn_shape *shape, void *c,
                      const void *a, const void *b, const void *bias, void *scratch);

/* `rows` rows of `columns` elements, from one array into another, converted where the types differ.
 * Local. */
void product_copy_rows(void *to, enum dtype to_dtype, int64_t to_stride, const void *from,
                       enum dtype from_dtype, int64_t from_stride, int64_t rows, int64_t columns);

/* Rows as they lie in memory. */
struct product_rows {
  const void *first;
  int64_t count, columns, stride;
};

/* Copies bf16 rows to F32, without gaps, on all threads. Local. */
void product_widen(float *to, const struct product_rows *rows);

/* to[columns][to_stride], the first `count` of each: the transposed rows, in F32, on all threads.
 * Local. */
void product_transpose(float *to, int64_t to_stride, const struct product_rows *rows,
                       enum dtype dtype);

/* Product with `a` along its rows: tiles of whole rows. `wide_scratch`, unless NULL: bf16 is
 * multiplied as F32, to which b is copied there. Local. */
void product_rows_run(const struct product *product, struct scratch *scratch,
                      struct scratch *wide_scratch);

/* Product with a transposed `a`, such as a weight's gradient: the long sum is made in pieces, of
 * which `wide_scratch`, unless NULL, takes copies in F32 that suit the library. Local. */
void product_columns_run(const struct product *product, struct scratch *scratch,
                         struct scratch *wide_scratch);

#endif
