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

/* Product with `a` along its rows: tiles of whole rows. Local. */
void product_rows_run(const struct product *product, struct scratch *scratch);

/* Product with a transposed `a`, such as a weight's gradient: the long sum is made in pieces.
 * Local.
 */
void product_columns_run(const struct product *product, struct scratch *scratch);

/* The same product with operands copied to F32, for machines that do not multiply bf16, and the way
 * back of its result. The copies live in `scratch`. Local. */
struct product product_widen(const struct product *product, struct scratch *scratch);
void product_narrow(const struct product *product, const struct product *wide);

#endif
