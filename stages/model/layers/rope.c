#include "stages/model/layers/rope.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "stages/model/tape/array.h"

enum { ROPE_PAIRS = 512 };

struct rope_record {
  struct record record;
  struct value *x, *y;
  void *cosine, *sine;
  int64_t heads;
  bool interleaved;
};

static void rotate(struct tape *tape, const struct rope_record *rope, void *y, const void *x,
                   int64_t y_stride, int64_t x_stride, bool inverse, bool add) {
  tape->kernels->rope_forward(y, x, rope->cosine, rope->sine, rope->x->rows, rope->heads,
                              rope->x->cols / rope->heads, x_stride, y_stride, rope->interleaved,
                              inverse, add);
}

static void rope_backward(struct tape *tape, const struct record *record) {
  const struct rope_record *kept = (const struct rope_record *)record;
  if (!kept->y->reached || !kept->x->needs_gradient) return;
  bool add;
  void *dx = tape_gradient(tape, kept->x, &add);
  rotate(tape, kept, dx, kept->y->gradient, kept->x->stride, kept->y->stride, true, add);
}

static const struct record_kind rope_kind = {"rope", rope_backward, NULL};

/* Cosines and sines of one position; position -1 turns by nothing. */
static void fill_row(const struct tape *tape, struct rope_record *tables, int64_t row,
                     int64_t pairs, const double *frequencies, int32_t position) {
  double cosine[ROPE_PAIRS], sine[ROPE_PAIRS];
  const double turn = position < 0 ? 0 : (double)position;
  for (int64_t i = 0; i < pairs; i++) cosine[i] = cos(turn * frequencies[i]);
  for (int64_t i = 0; i < pairs; i++) sine[i] = sin(turn * frequencies[i]);
  array_put_sums(tape, array_sum_at(tape, tables->cosine, row * pairs), cosine, pairs);
  array_put_sums(tape, array_sum_at(tape, tables->sine, row * pairs), sine, pairs);
}

/* The row from which positions begin again (sequences of a batch), or the number of rows. Sequences
 * may start with some rows of one position: control tokens that are not turned. */
static int64_t period(const int32_t *positions, int64_t rows) {
  int64_t i = 1;
  while (i < rows && positions[i] == positions[0]) i++;
  while (i < rows && positions[i] != positions[0]) i++;
  return i;
}

static void copy_row(const struct tape *tape, const struct rope_record *tables, int64_t row,
                     int64_t from, int64_t pairs) {
  const size_t bytes = (size_t)pairs * dtype_bytes(tape->kernels->sum);
  memcpy(array_sum_at(tape, tables->cosine, row * pairs),
         array_sum_at(tape, tables->cosine, from * pairs), bytes);
  memcpy(array_sum_at(tape, tables->sine, row * pairs),
         array_sum_at(tape, tables->sine, from * pairs), bytes);
}

static void fill_tables(struct tape *tape, struct rope_record *tables, const struct rope *rope,
                        int64_t rows, int64_t pairs) {
  double frequencies[ROPE_PAIRS];
  assert(pairs <= ROPE_PAIRS);
  tables->cosine = array_sums(tape, rows * pairs);
  tables->sine = array_sums(tape, rows * pairs);
  if (!tables->cosine) return;
  for (int64_t i = 0; i < pairs; i++) frequencies[i] = pow(rope->theta, -(double)i / (double)pairs);
  const int64_t again = period(rope->positions, rows);
  for (int64_t i = 0; i < rows; i++) {
    if (i >= again && rope->positions[i] == rope->positions[i - again])
      copy_row(tape, tables, i, i - again, pairs);
    else
      fill_row(tape, tables, i, pairs, frequencies, rope->positions[i]);
  }
}

struct value *rope_forward(struct tape *tape, struct value *x, const struct rope *rope) {
  const int64_t width = x->cols / rope->heads;
  assert(width * rope->heads == x->cols && width % 2 == 0);
  struct value *y = tape_value(tape, x->rows, x->cols);
  struct rope_record described = {
      .x = x, .y = y, .heads = rope->heads, .interleaved = rope->interleaved};
  fill_tables(tape, &described, rope, x->rows, width / 2);
  rotate(tape, &described, y->data, x->data, y->stride, x->stride, false, false);
  struct rope_record *kept = tape_record(tape, &rope_kind, sizeof(*kept), NULL, 0);
  if (!kept) return y;
  described.record = kept->record;
  *kept = described;
  return y;
}
