#include <string.h>

#include "pipeline/base/bf16.h"
#include "sharding/dense.h"
#include "sharding/dense_multiply.h"
#include "sharding/tree.h"

enum { EXACT_ROWS = 128 };

struct gram {
  const struct dense_table *table;
  int64_t first_row; /* of this member */
  double *levels;    /* [depth][C][C] */
  float *working;    /* [C][C]; NULL where products are exact */
  double *rows;      /* [EXACT_ROWS][C]; NULL where a product is given */
};

static const void *row_at(const struct dense_table *table, int64_t row) {
  return (const char *)table->rows + row * table->C * (int64_t)dtype_bytes(table->dtype);
}

static double element_at(const void *values, enum dtype dtype, int64_t i) {
  if (dtype == DTYPE_F64) return ((const double *)values)[i];
  if (dtype == DTYPE_F32) return (double)((const float *)values)[i];
  return (double)bf16_to_float(((const bf16 *)values)[i]);
}

static void widen(double *wide, const struct dense_table *table, int64_t row, int64_t count) {
  const void *values = row_at(table, row);
  for (int64_t i = 0; i < count * table->C; i++) wide[i] = element_at(values, table->dtype, i);
}

static void add_floats(double *sum, const float *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) sum[i] += (double)values[i];
}

static void add_rows(const struct gram *gram, double *sum, int64_t row, int64_t count) {
  const struct dense_table *table = gram->table;
  const int64_t C = table->C;
  if (table->product) {
    float *block = gram->working;
    table->product->gram(table->product->context, block, row_at(table, row), count, C);
    add_floats(sum, block, C * C);
    return;
  }
  const struct dense_sizes sizes = {C, C, count, true};
  widen(gram->rows, table, row, count);
  dense_multiply(sum, C, (struct dense_view){gram->rows, 1, C},
                 (struct dense_view){gram->rows, C, 1}, &sizes, 1);
}

/* The Gram matrix of a slice: blocks of rows in order, beginning with the slice. */
static void add_slice(const struct gram *gram, double *sum, struct split slice) {
  const int64_t step = gram->table->product ? DENSE_GRAM_ROWS : EXACT_ROWS;
  for (int64_t row = slice.begin; row < slice.end; row += step)
    add_rows(gram, sum, row - gram->first_row, slice.end - row < step ? slice.end - row : step);
}

/* Adds the newest slice's matrix to those that wait, as tree_add_floats does. */
static void merge(const struct gram *gram, struct tree_place place, int64_t elements) {
  double *level = gram->levels + (place.level + 1) * elements;
  for (int64_t m = 0; m < place.merges; m++, level -= elements)
    for (int64_t i = 0; i < elements; i++) level[i - elements] += level[i];
}

static void mirror(double *gram, int64_t C) {
  for (int64_t i = 0; i < C; i++)
    for (int64_t j = i + 1; j < C; j++) gram[i * C + j] = gram[j * C + i];
}

/* Each slice is made on top of the stack. */
static void add_local_slices(const struct vocab *vocab, const struct gram *gram) {
  const int64_t elements = gram->table->C * gram->table->C;
  for (int64_t s = 0; s < vocab_slices_local(vocab); s++) {
    const struct tree_place place = tree_place(vocab_slices_local(vocab), s);
    double *top = gram->levels + (place.level + (place.merges > 0)) * elements;
    memset(top, 0, (size_t)elements * sizeof *top);
    add_slice(gram, top, vocab_slice(vocab, vocab->first_slice + s));
    if (place.merges > 0) merge(gram, place, elements);
  }
}

static enum status add_members(struct vocab *vocab, double *gram, int64_t elements) {
  if (vocab_members(vocab) == 1) return STATUS_OK;
  if (split_power_of_two(vocab_members(vocab)))
    return comm_tree_sum(vocab->group, gram, elements, DTYPE_F64);
  return comm_allreduce(vocab->group, gram, elements, DTYPE_F64, COMM_SUM);
}

enum status dense_gram(struct vocab *vocab, double *gram, const struct dense_table *table,
                       struct arena *scratch) {
  const int64_t C = table->C;
  const size_t matrix = (size_t)(C * C) * sizeof(double);
  const size_t mark = arena_mark(scratch);
  struct gram work = {.table = table, .first_row = vocab->rows.begin};
  work.levels = arena_take(scratch, (size_t)(tree_depth(vocab_slices_local(vocab)) + 1) * matrix);
  if (table->product)
    work.working = arena_take(scratch, (size_t)(C * C) * sizeof(float));
  else
    work.rows = arena_take(scratch, (size_t)(EXACT_ROWS * C) * sizeof(double));
  if (!arena_is_measuring(scratch)) {
    add_local_slices(vocab, &work);
    TRY(add_members(vocab, work.levels, C * C));
    mirror(work.levels, C);
    memcpy(gram, work.levels, matrix);
  }
  arena_reset(scratch, mark);
  return STATUS_OK;
}
