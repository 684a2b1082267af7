#include <stddef.h>

#include "stages/model/kernels/product_tile.h"

/* Measured on an AMD Zen 5. The cut depends on the shape alone: the library may sum in another
 * order for another size of tile. */
enum {
  UNIT = 16,
  TILE_ROWS = 384,
  TILE_COLUMNS = 1024,
  TILES = 4,          /* at least, where the product is not small */
  PIECE_TERMS = 1024, /* of a sum into F32 */
  SERIAL_WORK = 1 << 20
};

/* Tiles at the ends of each dimension have other sizes: index = m + 2 n + 4 k, where k is 0 for the
 * first piece of the sum, 1 for the next ones, 2 for the last. */
enum { VARIANTS = 12 };

struct plan {
  const struct product *product;
  struct product_cut m, n, k;
  struct onednn_shape shapes[VARIANTS];
  const struct onednn_product *tiles[VARIANTS];
  struct scratch *scratch;
};

static void make_shapes(struct plan *plan) {
  for (int i = 0; i < VARIANTS; i++) {
    const int piece = i / 4;
    plan->shapes[i] = product_tile_shape(plan->product, i & 1 ? plan->m.last : plan->m.size,
                                         i & 2 ? plan->n.last : plan->n.size,
                                         piece == 2 ? plan->k.last : plan->k.size);
    plan->shapes[i].add = piece > 0 || plan->product->add;
  }
}

static void find_tiles(struct plan *plan) {
  const int count = plan->k.count > 1 ? VARIANTS : 4;
  onednn_find(plan->tiles, plan->shapes, count);
  size_t bytes = 0;
  for (int i = 0; i < count; i++) {
    const size_t needed = plan->tiles[i] ? onednn_scratch_bytes(plan->tiles[i]) : 0;
    if (needed > bytes) bytes = needed;
  }
  scratch_reserve(plan->scratch, bytes);
}

/* An even number of pieces of m, so that threads have equal shares. */
static int64_t row_pieces(int64_t m) {
  const int64_t pieces = (m + TILE_ROWS - 1) / TILE_ROWS;
  return pieces + pieces % 2;
}

static struct plan make_plan(const struct product *product, struct scratch *scratch) {
  struct plan plan = {.product = product, .scratch = scratch};
  plan.m = product_tile_cut(product->m, UNIT, TILE_ROWS, row_pieces(product->m));
  plan.n =
      product_tile_cut(product->n, UNIT, TILE_COLUMNS, (TILES + plan.m.count - 1) / plan.m.count);
  plan.k = product->output == DTYPE_F32 ? product_tile_cut(product->k, PIECE_TERMS, PIECE_TERMS, 1)
                                        : (struct product_cut){product->k, 1, product->k};
  make_shapes(&plan);
  find_tiles(&plan);
  return plan;
}

static const char *at(const void *base, enum dtype dtype, int64_t index) {
  return (const char *)base + index * (int64_t)dtype_bytes(dtype);
}

static void run_tile(const struct plan *plan, int64_t row, int64_t column, int64_t piece) {
  const struct product *p = plan->product;
  const int64_t i = row * plan->m.size, j = column * plan->n.size, k = piece * plan->k.size;
  const int order = piece == 0 ? 0 : piece + 1 < plan->k.count ? 1 : 2;
  const int variant = (row + 1 == plan->m.count) + 2 * (column + 1 == plan->n.count) + 4 * order;
  product_tile_run(plan->tiles[variant], &plan->shapes[variant],
                   (char *)p->c + (i * p->c_row + j) * (int64_t)dtype_bytes(p->output),
                   at(p->a, p->input, i * p->a_row + k * p->a_column),
                   at(p->b, p->input, k * p->b_row + j * p->b_column), NULL,
                   scratch_piece(plan->scratch));
}

void product_columns_run(const struct product *product, struct scratch *scratch) {
  const struct plan plan = make_plan(product, scratch);
  const bool parallel = product->m * product->n * product->k > SERIAL_WORK;
#pragma omp parallel for schedule(dynamic) if (parallel)
  for (int64_t tile = 0; tile < plan.m.count * plan.n.count; tile++)
    for (int64_t piece = 0; piece < plan.k.count; piece++)
      run_tile(&plan, tile / plan.n.count, tile % plan.n.count, piece);
}
