#include <omp.h>
#include <stddef.h>
#include <string.h>

#include "stages/model/kernels/product_tile.h"

/* Measured on an AMD Zen 5. The library packs b for each tile anew, which small tiles feel; tiles
 * of more rows than that gain nothing, and few tiles share out badly. */
enum {
  UNIT_ROWS = 8,
  FEW_ROWS = 256,
  MANY_ROWS = 512,
  TILES_PER_THREAD = 4,
  PADDED_ROWS = 64,
  SERIAL_WORK = 1 << 20
};

struct plan {
  const struct product *given;
  struct product seen; /* by the library: the same, or in F32 with a copy of b */
  struct product_cut rows;
  struct onednn_shape shapes[2]; /* of all tiles but the last, of the last */
  const struct onednn_product *tiles[2];
  bool pack_a, pack_c; /* copies of a's rows, c's rows without gaps, as the library sees them */
  size_t a_offset, c_offset, bytes;
  struct scratch *scratch;
};

/* A copy of b in F32, laid out as b is. */
static void widen_b(struct product *seen, const struct product *given, struct scratch *scratch) {
  const bool along = given->b_column == 1;
  const struct product_rows b = {.first = given->b,
                                 .count = along ? given->k : given->n,
                                 .columns = along ? given->n : given->k,
                                 .stride = along ? given->b_row : given->b_column};
  float *wide = scratch_share(scratch, (size_t)(b.count * b.columns) * sizeof *wide);
  product_widen(wide, &b);
  seen->b = wide;
  *(along ? &seen->b_row : &seen->b_column) = b.columns;
  seen->input = seen->output = DTYPE_F32;
}

static struct product_cut cut_rows(int64_t m) {
  const int64_t threads = omp_get_max_threads();
  int64_t wanted = (m + FEW_ROWS - 1) / FEW_ROWS;
  if (wanted > threads * TILES_PER_THREAD) wanted = threads * TILES_PER_THREAD;
  return product_tile_cut(m, UNIT_ROWS, MANY_ROWS, wanted < threads ? threads : wanted);
}

static void make_shapes(struct plan *plan) {
  const struct product *p = &plan->seen;
  const int64_t rows[2] = {plan->rows.size, plan->rows.last};
  for (int i = 0; i < 2; i++) {
    plan->shapes[i] = product_tile_shape(p, rows[i], p->n, p->k);
    if (plan->pack_a || rows[i] == 1) plan->shapes[i].a_row = p->k;
    if (plan->pack_c || rows[i] == 1) plan->shapes[i].c_row = p->n;
  }
  onednn_find(plan->tiles, plan->shapes, 2);
}

/* The library's general products give a row other bits beside other rows: then every tile has the
 * same number of rows, filled up with zeros. */
static void pad_tiles(struct plan *plan) {
  const int64_t count = (plan->given->m + PADDED_ROWS - 1) / PADDED_ROWS;
  plan->rows = (struct product_cut){PADDED_ROWS, count, plan->given->m - (count - 1) * PADDED_ROWS};
  plan->pack_a = plan->pack_c = true;
  make_shapes(plan);
  plan->shapes[1] = plan->shapes[0];
  plan->tiles[1] = plan->tiles[0];
}

static size_t aligned(int64_t elements, enum dtype dtype) {
  const size_t bytes = (size_t)elements * dtype_bytes(dtype);
  return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

static void lay_out_scratch(struct plan *plan) {
  const struct product *p = &plan->seen;
  for (int i = 0; i < 2; i++) {
    const size_t needed = plan->tiles[i] ? onednn_scratch_bytes(plan->tiles[i]) : 0;
    if (needed > plan->a_offset) plan->a_offset = needed;
  }
  plan->a_offset = aligned((int64_t)plan->a_offset, DTYPE_U8);
  plan->c_offset = plan->a_offset + (plan->pack_a ? aligned(plan->rows.size * p->k, p->input) : 0);
  plan->bytes = plan->c_offset + (plan->pack_c ? aligned(plan->rows.size * p->n, p->output) : 0);
  scratch_reserve(plan->scratch, plan->bytes);
}

static struct plan make_plan(const struct product *given, struct scratch *scratch,
                             struct scratch *wide_scratch) {
  struct plan plan = {
      .given = given, .seen = *given, .rows = cut_rows(given->m), .scratch = scratch};
  if (wide_scratch) widen_b(&plan.seen, given, wide_scratch);
  plan.pack_a = given->a_row != given->k || given->input != plan.seen.input;
  plan.pack_c = given->c_row != given->n || given->output != plan.seen.output;
  make_shapes(&plan);
  if (!plan.tiles[0] || !onednn_keeps_rows(plan.tiles[0])) pad_tiles(&plan);
  lay_out_scratch(&plan);
  return plan;
}

static const void *pack_a(const struct plan *plan, const char *a, int64_t rows, int64_t tile_rows,
                          char *to) {
  if (!plan->pack_a) return a;
  const struct product *given = plan->given;
  const enum dtype dtype = plan->seen.input;
  const size_t row_bytes = (size_t)given->k * dtype_bytes(dtype);
  product_copy_rows(to, dtype, given->k, a, given->input, given->a_row, rows, given->k);
  memset(to + (size_t)rows * row_bytes, 0, (size_t)(tile_rows - rows) * row_bytes);
  return to;
}

static void run_tile(const struct plan *plan, int64_t tile) {
  const struct product *given = plan->given, *seen = &plan->seen;
  const int last = tile + 1 == plan->rows.count;
  const int64_t rows = last ? plan->rows.last : plan->rows.size, first = tile * plan->rows.size;
  char *piece = scratch_piece(plan->scratch);
  char *c = (char *)given->c + first * given->c_row * (int64_t)dtype_bytes(given->output);
  char *target = plan->pack_c ? piece + plan->c_offset : c;
  const char *a =
      (const char *)given->a + first * given->a_row * (int64_t)dtype_bytes(given->input);
  if (plan->pack_c && given->add)
    product_copy_rows(target, seen->output, given->n, c, given->output, given->c_row, rows,
                      given->n);
  product_tile_run(plan->tiles[last], &plan->shapes[last], target,
                   pack_a(plan, a, rows, plan->shapes[last].m, piece + plan->a_offset), seen->b,
                   given->bias, piece);
  if (plan->pack_c)
    product_copy_rows(c, given->output, given->c_row, target, seen->output, given->n, rows,
                      given->n);
}

void product_rows_run(const struct product *product, struct scratch *scratch,
                      struct scratch *wide_scratch) {
  const struct plan plan = make_plan(product, scratch, wide_scratch);
  const bool parallel = product->m * product->n * product->k > SERIAL_WORK;
#pragma omp parallel for schedule(dynamic) if (parallel)
  for (int64_t tile = 0; tile < plan.rows.count; tile++) run_tile(&plan, tile);
}
