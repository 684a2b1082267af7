#include <stddef.h>

#include "stages/model/kernels/product_tile.h"

/* Measured on an AMD Zen 5. The cut depends on the shape alone: the library may sum in another
 * order for another size of tile. */
enum {
  UNIT = 16,
  TILE_ROWS = 384,
  TILE_COLUMN_BYTES = 2048,
  TILES = 4,          /* at least, where the product is not small */
  PIECE_TERMS = 1024, /* of a sum into F32 */
  SERIAL_WORK = 1 << 20
};

/* Tiles at the ends of each dimension have other sizes: index = m + 2 n + 4 k, where k is 0 for the
 * first piece of the sum, 1 for the next ones, 2 for the last. */
enum { VARIANTS = 12 };

struct plan {
  struct product product; /* as the library sees it */
  struct product_cut m, n, k;
  struct onednn_shape shapes[VARIANTS];
  const struct onednn_product *tiles[VARIANTS];
  struct scratch *scratch;
};

static void make_shapes(struct plan *plan) {
  for (int i = 0; i < VARIANTS; i++) {
    const int piece = i / 4;
    plan->shapes[i] = product_tile_shape(&plan->product, i & 1 ? plan->m.last : plan->m.size,
                                         i & 2 ? plan->n.last : plan->n.size,
                                         piece == 2 ? plan->k.last : plan->k.size);
    plan->shapes[i].add = piece > 0 || plan->product.add;
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

static struct product_cut cut_terms(int64_t k) {
  return product_tile_cut(k, PIECE_TERMS, PIECE_TERMS, 1);
}

static struct plan make_plan(const struct product *product, struct scratch *scratch) {
  struct plan plan = {.product = *product, .scratch = scratch};
  const int64_t columns = TILE_COLUMN_BYTES / (int64_t)dtype_bytes(product->input);
  plan.m = product_tile_cut(product->m, UNIT, TILE_ROWS, row_pieces(product->m));
  plan.n = product_tile_cut(product->n, UNIT, columns, (TILES + plan.m.count - 1) / plan.m.count);
  plan.k = cut_terms(product->k);
  make_shapes(&plan);
  find_tiles(&plan);
  return plan;
}

static const char *at(const void *base, enum dtype dtype, int64_t index) {
  return (const char *)base + index * (int64_t)dtype_bytes(dtype);
}

/* One piece of the sum: where its terms of a and b begin. */
struct piece {
  const void *a, *b;
  int order; /* 0: the first, 2: the last of several, 1: those between */
};

static struct piece piece_at(const struct plan *plan, int64_t i) {
  const struct product *p = &plan->product;
  const int64_t k = i * plan->k.size;
  return (struct piece){.a = at(p->a, p->input, k * p->a_column),
                        .b = at(p->b, p->input, k * p->b_row),
                        .order = i == 0                  ? 0
                                 : i + 1 < plan->k.count ? 1
                                                         : 2};
}

static void run_tile(const struct plan *plan, const struct piece *piece, int64_t tile) {
  const struct product *p = &plan->product;
  const int64_t row = tile / plan->n.count, column = tile % plan->n.count;
  const int64_t i = row * plan->m.size, j = column * plan->n.size;
  const int variant =
      (row + 1 == plan->m.count) + 2 * (column + 1 == plan->n.count) + 4 * piece->order;
  product_tile_run(plan->tiles[variant], &plan->shapes[variant],
                   (char *)p->c + (i * p->c_row + j) * (int64_t)dtype_bytes(p->output),
                   at(piece->a, p->input, i * p->a_row), at(piece->b, p->input, j * p->b_column),
                   NULL, scratch_piece(plan->scratch));
}

static void run_pieces(const struct plan *plan, bool parallel) {
#pragma omp parallel for schedule(dynamic) if (parallel)
  for (int64_t tile = 0; tile < plan->m.count * plan->n.count; tile++)
    for (int64_t i = 0; i < plan->k.count; i++) {
      const struct piece piece = piece_at(plan, i);
      run_tile(plan, &piece, tile);
    }
}

/* The terms of one piece in F32: `a` turned round, which the library does at half the speed, and
 * where it is not F32 a copy of b without gaps. */
static struct piece copy_piece(const struct product *given, const struct plan *plan, int64_t i,
                               float *to) {
  const int64_t k = i * plan->k.size;
  const int64_t terms = i + 1 < plan->k.count ? plan->k.size : plan->k.last;
  const void *a = at(given->a, given->input, k * given->a_column);
  struct piece piece = piece_at(plan, i);
  piece.a = to;
  product_transpose(to, plan->k.size, &(struct product_rows){a, terms, given->m, given->a_column},
                    given->input);
  piece.b = at(given->b, given->input, k * given->b_row);
  if (given->input == DTYPE_F32) return piece;
  to += plan->k.size * given->m;
  product_widen(to, &(struct product_rows){piece.b, terms, given->n, given->b_row});
  piece.b = to;
  return piece;
}

/* Piece after piece, so that one of them is held in F32 at a time. */
static void run_copies(const struct product *given, struct scratch *scratch,
                       struct scratch *wide_scratch, bool parallel) {
  struct product seen = *given;
  seen.input = DTYPE_F32;
  seen.a_row = cut_terms(given->k).size;
  seen.a_column = 1;
  if (given->input != DTYPE_F32) seen.b_row = given->n;
  const struct plan plan = make_plan(&seen, scratch);
  const int64_t count = plan.k.size * (given->m + given->n);
  float *copies = scratch_share(wide_scratch, (size_t)count * sizeof *copies);
  for (int64_t i = 0; i < plan.k.count; i++) {
    const struct piece piece = copy_piece(given, &plan, i, copies);
#pragma omp parallel for schedule(dynamic) if (parallel)
    for (int64_t tile = 0; tile < plan.m.count * plan.n.count; tile++)
      run_tile(&plan, &piece, tile);
  }
}

void product_columns_run(const struct product *product, struct scratch *scratch,
                         struct scratch *wide_scratch) {
  const bool parallel = product->m * product->n * product->k > SERIAL_WORK;
  if (wide_scratch) {
    run_copies(product, scratch, wide_scratch, parallel);
    return;
  }
  const struct plan plan = make_plan(product, scratch);
  run_pieces(&plan, parallel);
}
