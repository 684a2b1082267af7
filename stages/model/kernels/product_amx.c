#include "stages/model/kernels/product_amx.h"

#include <omp.h>
#include <stddef.h>

#include "stages/model/kernels/product_tile.h"
#include "stages/model/kernels/simd.h"
#include "stages/model/kernels/tiles.h"

/* Operands are packed into panels: PANEL lines (rows of a, columns of b) by steps of TILE_TERMS
 * terms, in words of two bf16. A step has two tiles of 16 x 16 words, of the first and the last 16
 * lines: [line][word] for a, [word][line] for b. Lines and terms beyond the end are 0. */
enum {
  PANEL = TILE_PAIR,
  TILE_TERMS = 32,
  TILE_FLOATS = TILE_SIDE * TILE_SIDE,
  TILE_BYTES_ACROSS = 64,
  STEP_FLOATS = 2 * TILE_FLOATS
};

/* Measured on one Sapphire Rapids core: a thread's rows of a stay in the second cache, which two
 * threads share, while the packed b streams past them. */
enum {
  ROW_BYTES = 1 << 20,
  MOST_ROWS = 256,
  FEWEST_ROWS = 64,
  TASKS_PER_THREAD = 4,
  COLUMN_BYTES = 16 << 20, /* of packed b at once */
  LONG_TERMS = 2048,       /* of a sum into F32 at once, where a is transposed */
  NEAR_PANELS = 8,
  NEAR_BYTES = 512 << 10, /* of panels of b that are near each other */
  STREAM_BYTES = 8 << 20,
  CHAIN_STEPS = 32, /* of sums in registers: longer ones are rounded worse */
  SERIAL_WORK = 1 << 20,
  PANEL_SUMS = PANEL * PANEL,
  STAGE_ROW = NEAR_PANELS * PANEL,
  SPARE_BYTES = (PANEL_SUMS + PANEL * STAGE_ROW) * (int)sizeof(float)
};

/* What lies packed in a panel. Element (line, term) is first[line * stride + term] when `along`,
 * else first[term * stride + line]. */
struct lines {
  const bf16 *first;
  int64_t stride, lines, terms;
};

static int64_t steps_of(int64_t terms) {
  return (terms + TILE_TERMS - 1) / TILE_TERMS;
}

static int left(int64_t count, int limit) {
  return count < limit ? (int)count : limit;
}

/* One tile of words from (line, term) on: rows are lines when `along`, else words. */
static inline __attribute__((always_inline)) void load_words(simd_float block[TILE_SIDE],
                                                             const struct lines *from, int64_t line,
                                                             int64_t term, bool along) {
  const int64_t lines = from->lines - line, terms = from->terms - term;
  for (int64_t i = 0; i < TILE_SIDE; i++) {
    block[i] = simd_set(0);
    if (along && i < lines)
      block[i] =
          simd_load_pairs(from->first + (line + i) * from->stride + term, left(terms, TILE_TERMS));
    if (!along && 2 * i < terms && lines > 0) {
      const bf16 *low = from->first + (term + 2 * i) * from->stride + line;
      block[i] = simd_load_across(low, 2 * i + 1 < terms ? low + from->stride : NULL,
                                  left(lines, TILE_SIDE));
    }
  }
}

/* A whole step of a panel across its lines, as load_words would load it: first pairs of terms,
 * whose words come in groups of four lines, of every other group at a time; then they are turned
 * round. */
static void pack_across_turned(float *to, const bf16 *first, int64_t stride) {
  simd_float even[TILE_SIDE], odd[TILE_SIDE];
  for (int64_t i = 0; i < TILE_SIDE; i++) {
    const __m512i low = _mm512_loadu_si512(first + 2 * i * stride);
    const __m512i high = _mm512_loadu_si512(first + (2 * i + 1) * stride);
    even[i] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(low, high));
    odd[i] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(low, high));
  }
  simd_transpose(even);
  simd_transpose(odd);
  for (int64_t i = 0; i < TILE_SIDE; i++) {
    const int64_t line = i / 4 * 8 + i % 4;
    simd_store(to + line * TILE_SIDE, even[i]);
    simd_store(to + (line + 4) * TILE_SIDE, odd[i]);
  }
}

static void pack_across(float *to, const bf16 *first, int64_t stride) {
  for (int64_t i = 0; i < TILE_SIDE; i++, to += TILE_SIDE) {
    const simd_float low = simd_load((const float *)(const void *)(first + 2 * i * stride));
    const simd_float high = simd_load((const float *)(const void *)(first + (2 * i + 1) * stride));
    simd_store(to, simd_pair_across_low(low, high));
    simd_store(to + TILE_FLOATS, simd_pair_across_high(low, high));
  }
}

/* One step of a panel. */
static inline __attribute__((always_inline)) void pack_step(float *to, const struct lines *from,
                                                            int64_t term, bool along, bool turned) {
  const bool whole = from->lines >= PANEL && from->terms - term >= TILE_TERMS;
  if (!along && whole && turned) {
    pack_across_turned(to, from->first + term * from->stride, from->stride);
    return;
  }
  if (!along && whole) {
    pack_across(to, from->first + term * from->stride, from->stride);
    return;
  }
  simd_float block[TILE_SIDE];
  for (int64_t half = 0; half < 2; half++, to += TILE_FLOATS) {
    load_words(block, from, half * TILE_SIDE, term, along);
    if (turned) simd_transpose(block);
    for (int64_t i = 0; i < TILE_SIDE; i++) simd_store(to + i * TILE_SIDE, block[i]);
  }
}

/* The first PANEL of each of PANEL rows of sums = the product of two panels. Tiles 0 to 3 are sums,
 * 4 and 5 of a, 6 and 7 of b. */
static inline void multiply(float *sums, int64_t stride, const float *a, const float *b,
                            int64_t steps) {
  const size_t across = (size_t)stride * sizeof(float);
  float *below = sums + TILE_SIDE * stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < steps; step++, a += STEP_FLOATS, b += STEP_FLOATS) {
    _tile_loadd(6, b, TILE_BYTES_ACROSS);
    _tile_loadd(4, a, TILE_BYTES_ACROSS);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + TILE_FLOATS, TILE_BYTES_ACROSS);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + TILE_FLOATS, TILE_BYTES_ACROSS);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, across);
  _tile_stored(1, sums + TILE_SIDE, across);
  _tile_stored(2, below, across);
  _tile_stored(3, below + TILE_SIDE, across);
}

struct plan {
  const struct product *product;
  int64_t first_term, terms, steps;     /* of the piece of the sum */
  int64_t first_column, columns;        /* of the piece of b */
  int64_t panels, groups, group_panels; /* of columns: all, and for one task */
  int64_t near_panels;
  struct product_cut rows;
  bool add, along; /* add: to c; along: a lies along its rows */
  bool streams;    /* c goes past the caches */
  const struct scratch *pieces;
  float *b;
};

static int64_t panels_of(int64_t count) {
  return (count + PANEL - 1) / PANEL;
}

static struct lines lines_of_a(const struct plan *plan, int64_t row, int64_t rows) {
  const struct product *p = plan->product;
  return (struct lines){.first =
                            (const bf16 *)p->a + row * p->a_row + plan->first_term * p->a_column,
                        .stride = plan->along ? p->a_row : p->a_column,
                        .lines = rows,
                        .terms = plan->terms};
}

/* Memory is read along its rows: panel after panel, or the same terms of all panels. */
static void pack_a(const struct plan *plan, float *to, int64_t row, int64_t rows) {
  const int64_t panel_floats = plan->steps * STEP_FLOATS;
  for (int64_t i = 0; plan->along && i < rows; i += PANEL) {
    const struct lines lines = lines_of_a(plan, row + i, rows - i);
    for (int64_t step = 0; step < plan->steps; step++)
      pack_step(to + i / PANEL * panel_floats + step * STEP_FLOATS, &lines, step * TILE_TERMS, true,
                false);
  }
  for (int64_t step = 0; !plan->along && step < plan->steps; step++)
    for (int64_t i = 0; i < rows; i += PANEL) {
      const struct lines lines = lines_of_a(plan, row + i, rows - i);
      pack_step(to + i / PANEL * panel_floats + step * STEP_FLOATS, &lines, step * TILE_TERMS,
                false, true);
    }
}

static struct lines lines_of_b(const struct plan *plan, int64_t panel) {
  const struct product *p = plan->product;
  const int64_t column = plan->first_column + panel * PANEL;
  return (struct lines){.first =
                            (const bf16 *)p->b + column * p->b_column + plan->first_term * p->b_row,
                        .stride = p->b_row == 1 ? p->b_column : p->b_row,
                        .lines = plan->first_column + plan->columns - column,
                        .terms = plan->terms};
}

static float *place_in_b(const struct plan *plan, int64_t panel, int64_t step) {
  return plan->b + (panel * plan->steps + step) * STEP_FLOATS;
}

static void pack_panel_of_b(const struct plan *plan, int64_t panel) {
  const struct lines lines = lines_of_b(plan, panel);
  for (int64_t step = 0; step < plan->steps; step++)
    pack_step(place_in_b(plan, panel, step), &lines, step * TILE_TERMS, true, true);
}

static void pack_step_of_b(const struct plan *plan, int64_t step) {
  for (int64_t panel = 0; panel < plan->panels; panel++) {
    const struct lines lines = lines_of_b(plan, panel);
    pack_step(place_in_b(plan, panel, step), &lines, step * TILE_TERMS, false, false);
  }
}

/* The product of two panels, rows of the stage; `spare` holds PANEL_SUMS. */
static void multiply_panels(float *sums, float *spare, const float *a, const float *b,
                            int64_t steps) {
  multiply(sums, STAGE_ROW, a, b, left(steps, CHAIN_STEPS));
  for (int64_t step = CHAIN_STEPS; step < steps; step += CHAIN_STEPS) {
    multiply(spare, PANEL, a + step * STEP_FLOATS, b + step * STEP_FLOATS,
             left(steps - step, CHAIN_STEPS));
    for (int64_t i = 0; i < PANEL; i++)
      for (int64_t k = 0; k < PANEL; k += SIMD_WIDTH) {
        float *sum = sums + i * STAGE_ROW + k;
        simd_store(sum, simd_add(simd_load(sum), simd_load(spare + i * PANEL + k)));
      }
  }
}

static inline void write_some(const struct plan *plan, int64_t row, int64_t column, simd_float sum,
                              int count) {
  const struct product *p = plan->product;
  if (p->bias) sum = simd_add(sum, simd_load_some((const float *)p->bias + column, count));
  if (p->output == DTYPE_F32) {
    float *to = (float *)p->c + row * p->c_row + column;
    simd_store_some(to, plan->add ? simd_add(sum, simd_load_some(to, count)) : sum, count);
    return;
  }
  bf16 *to = (bf16 *)p->c + row * p->c_row + column;
  simd_store_bf16_some(to, plan->add ? simd_add(sum, simd_load_bf16_some(to, count)) : sum, count);
}

/* Whole pairs of vectors of a row, each a line of bf16 or two of F32. Constants where inlined:
 * `wide` (F32), `again` (add, or for bf16: past the caches). */
static inline __attribute__((always_inline)) void write_lines(const struct plan *plan, int64_t row,
                                                              int64_t column, int64_t lines,
                                                              const float *sums, bool wide,
                                                              bool again) {
  const struct product *p = plan->product;
  const float *bias = p->bias ? (const float *)p->bias + column : NULL;
  const int64_t at = row * p->c_row + column;
  float *to = wide ? (float *)p->c + at : (float *)(void *)((bf16 *)p->c + at);
  for (int64_t i = 0; i < lines; i++, sums += PANEL) {
    simd_float x = simd_load(sums), y = simd_load(sums + SIMD_WIDTH);
    if (bias) {
      x = simd_add(x, simd_load(bias + i * PANEL));
      y = simd_add(y, simd_load(bias + i * PANEL + SIMD_WIDTH));
    }
    if (wide) {
      simd_store(to, again ? simd_add(x, simd_load(to)) : x);
      simd_store(to + SIMD_WIDTH, again ? simd_add(y, simd_load(to + SIMD_WIDTH)) : y);
      to += PANEL;
      continue;
    }
    if (again)
      _mm512_stream_ps(to, simd_pair_along(x, y));
    else
      simd_store(to, simd_pair_along(x, y));
    to += SIMD_WIDTH;
  }
}

static void write_rows(const struct plan *plan, int64_t row, int64_t column, int64_t columns,
                       const float *stage) {
  const struct product *p = plan->product;
  const bool wide = p->output == DTYPE_F32;
  const int64_t lines = wide || !plan->add ? columns / PANEL : 0;
  for (int i = 0; i < left(p->m - row, PANEL); i++, stage += STAGE_ROW) {
    if (wide && plan->add)
      write_lines(plan, row + i, column, lines, stage, true, true);
    else if (wide)
      write_lines(plan, row + i, column, lines, stage, true, false);
    else if (plan->streams)
      write_lines(plan, row + i, column, lines, stage, false, true);
    else
      write_lines(plan, row + i, column, lines, stage, false, false);
    for (int64_t j = lines * PANEL; j < columns; j += SIMD_WIDTH)
      write_some(plan, row + i, column + j, simd_load(stage + j), left(columns - j, SIMD_WIDTH));
  }
}

/* A panel of rows by panels of b, one after the other: neighbouring pieces of a line of c are
 * written together, which saves a third of the time. */
static void run_rows(const struct plan *plan, const float *a, int64_t row, int64_t begin,
                     int64_t end) {
  float *stage = scratch_piece(plan->pieces), *spare = stage + (int64_t)PANEL * STAGE_ROW;
  for (int64_t panel = begin; panel < end; panel++)
    multiply_panels(stage + (panel - begin) * PANEL, spare, a, place_in_b(plan, panel, 0),
                    plan->steps);
  const int64_t columns = plan->columns - begin * PANEL, most = (end - begin) * PANEL;
  write_rows(plan, row, plan->first_column + begin * PANEL, columns < most ? columns : most, stage);
}

static bool streams(const struct product *p) {
  const int64_t line = PANEL, bytes = p->m * p->n * (int64_t)sizeof(bf16);
  return p->output == DTYPE_BF16 && !p->add && bytes >= STREAM_BYTES && p->c_row % line == 0 &&
         (uintptr_t)p->c % ((size_t)line * sizeof(bf16)) == 0;
}

/* A block of rows by a group of panels of b. */
static void run_task(const struct plan *plan, int64_t task) {
  const int64_t block = task / plan->groups, group = task % plan->groups;
  const int64_t row = block * plan->rows.size;
  const int64_t rows = block + 1 == plan->rows.count ? plan->rows.last : plan->rows.size;
  float *a = (float *)(void *)((char *)scratch_piece(plan->pieces) + SPARE_BYTES);
  const int64_t begin = group * plan->group_panels, wanted = begin + plan->group_panels;
  const int64_t end = wanted < plan->panels ? wanted : plan->panels, near = plan->near_panels;
  pack_a(plan, a, row, rows);
  for (int64_t panel = begin; panel < end; panel += near)
    for (int64_t i = 0; i < rows; i += PANEL)
      run_rows(plan, a + i / PANEL * plan->steps * STEP_FLOATS, row + i, panel,
               panel + near < end ? panel + near : end);
}

/* Blocks of rows and groups of columns for one piece of b; how they are cut shows in no bits. */
static void cut_tasks(struct plan *plan) {
  const int64_t m = plan->product->m, wanted = omp_get_max_threads() * (int64_t)TASKS_PER_THREAD;
  const int64_t fitting = ROW_BYTES / (plan->steps * TILE_TERMS * (int64_t)sizeof(bf16));
  const int64_t most = fitting > MOST_ROWS ? MOST_ROWS : fitting < PANEL ? PANEL : fitting;
  const int64_t blocks = m / FEWEST_ROWS < wanted ? m / FEWEST_ROWS : wanted;
  plan->rows = product_tile_cut(m, PANEL, most / PANEL * PANEL, blocks > 0 ? blocks : 1);
  plan->groups = (wanted + plan->rows.count - 1) / plan->rows.count;
  plan->group_panels = (plan->panels + plan->groups - 1) / plan->groups;
  plan->groups = (plan->panels + plan->group_panels - 1) / plan->group_panels;
  const int64_t near = NEAR_BYTES / (plan->steps * STEP_FLOATS * (int64_t)sizeof(float));
  plan->near_panels = near > NEAR_PANELS ? NEAR_PANELS : near > 0 ? near : 1;
}

static void run_piece(struct plan *plan, struct scratch *pieces, struct scratch *shared) {
  const struct product *p = plan->product;
  plan->panels = panels_of(plan->columns);
  cut_tasks(plan);
  const size_t panel_bytes = (size_t)plan->steps * STEP_FLOATS * sizeof(float);
  scratch_reserve(pieces, (size_t)panels_of(plan->rows.size) * panel_bytes + SPARE_BYTES);
  plan->b = scratch_share(shared, (size_t)plan->panels * panel_bytes);
  const bool b_along = p->b_row == 1;
  const bool parallel = p->m * plan->columns * plan->terms > SERIAL_WORK;
#pragma omp parallel if (parallel)
  {
    tiles_configure();
#pragma omp for
    for (int64_t i = 0; i < (b_along ? plan->panels : plan->steps); i++)
      b_along ? pack_panel_of_b(plan, i) : pack_step_of_b(plan, i);
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < plan->rows.count * plan->groups; task++) run_task(plan, task);
    _tile_release();
    _mm_sfence();
  }
}

void product_amx_run(const struct product *p, struct scratch *pieces, struct scratch *shared) {
  struct plan plan = {
      .product = p, .along = p->a_column == 1, .streams = streams(p), .pieces = pieces};
  const int64_t terms = plan.along || p->k < LONG_TERMS ? p->k : LONG_TERMS;
  const int64_t fitting = COLUMN_BYTES / (terms * (int64_t)sizeof(bf16)) / PANEL * PANEL;
  const int64_t columns = fitting < PANEL ? PANEL : fitting;
  for (int64_t k = 0; k < p->k; k += terms)
    for (int64_t j = 0; j < p->n; j += columns) {
      plan.first_term = k;
      plan.terms = p->k - k < terms ? p->k - k : terms;
      plan.steps = steps_of(plan.terms);
      plan.first_column = j;
      plan.columns = p->n - j < columns ? p->n - j : columns;
      plan.add = p->add || k > 0;
      run_piece(&plan, pieces, shared);
    }
}
