#include <stddef.h>

#include "pipeline/base/bf16.h"
#include "stages/model/kernels/product_tile.h"

/* Rows as they lie in memory. */
struct rows {
  int64_t count, columns, stride;
};

static struct rows stored(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  if (column == 1) return (struct rows){rows, columns, row};
  return (struct rows){columns, rows, column};
}

static void widen(float *to, const bf16 *from, const struct rows *rows) {
#pragma omp parallel for
  for (int64_t i = 0; i < rows->count; i++)
    for (int64_t j = 0; j < rows->columns; j++)
      to[i * rows->columns + j] = bf16_to_float(from[i * rows->stride + j]);
}

static void narrow(bf16 *to, const float *from, const struct rows *rows) {
#pragma omp parallel for
  for (int64_t i = 0; i < rows->count; i++)
    for (int64_t j = 0; j < rows->columns; j++)
      to[i * rows->stride + j] = bf16_from_float(from[i * rows->columns + j]);
}

static float *take(struct arena *arena, const struct rows *rows) {
  return arena_take(arena, (size_t)(rows->count * rows->columns) * sizeof(float));
}

struct operands {
  struct rows a, b, c;
  float *wide_a, *wide_b, *wide_c;
};

static void take_all(struct operands *o, struct arena *arena, bool with_c) {
  o->wide_a = take(arena, &o->a);
  o->wide_b = take(arena, &o->b);
  o->wide_c = with_c ? take(arena, &o->c) : NULL;
}

struct product product_widen(const struct product *p, struct scratch *scratch) {
  const bool with_c = p->output == DTYPE_BF16;
  struct operands o = {.a = stored(p->m, p->k, p->a_row, p->a_column),
                       .b = stored(p->k, p->n, p->b_row, p->b_column),
                       .c = {p->m, p->n, p->c_row}};
  struct arena arena;
  arena_measure(&arena, "kernels");
  take_all(&o, &arena, with_c);
  arena = (struct arena){
      .account = "kernels", .base = scratch_share(scratch, arena.peak), .size = arena.peak};
  take_all(&o, &arena, with_c);
  widen(o.wide_a, p->a, &o.a);
  widen(o.wide_b, p->b, &o.b);
  if (with_c && p->add) widen(o.wide_c, p->c, &o.c);
  struct product wide = *p;
  wide.input = wide.output = DTYPE_F32;
  wide.a = o.wide_a;
  wide.b = o.wide_b;
  *(p->a_column == 1 ? &wide.a_row : &wide.a_column) = o.a.columns;
  *(p->b_column == 1 ? &wide.b_row : &wide.b_column) = o.b.columns;
  if (with_c) {
    wide.c = o.wide_c;
    wide.c_row = p->n;
  }
  return wide;
}

void product_narrow(const struct product *p, const struct product *wide) {
  if (p->output != DTYPE_BF16) return;
  narrow(p->c, wide->c, &(struct rows){p->m, p->n, p->c_row});
}
