#include "stages/model/layers/rope.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "stages/model/tape/array.h"
#include "stages/model/tape/tangent.h"

enum { ROPE_PAIRS = 256 };

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

static void rope_jvp(struct tape *tape, const struct record *record) {
  const struct rope_record *kept = (const struct rope_record *)record;
  if (!tangent_moves(kept->x)) return;
  void *ty = tangent_open(tape, kept->y);
  rotate(tape, kept, ty, tangent_of(tape, kept->x), kept->y->stride, kept->x->stride, false, false);
}

static const struct record_kind rope_kind = {"rope", rope_backward, rope_jvp};

/* A position is 64 a + b: its angles are sums of those of 64 a, kept while a stays the same, and of
 * those of b. So few cosines are computed, and each row depends on its position alone. */
enum { ROPE_FINE = 64 };

struct angles {
  double cosine[ROPE_PAIRS], sine[ROPE_PAIRS];
};

struct turns {
  int64_t pairs;
  double frequencies[ROPE_PAIRS];
  struct angles *fine; /* [ROPE_FINE]; scratch of the tape */
  struct angles coarse;
  int32_t coarse_position; /* -1: none yet */
};

static void set_angles(struct angles *angles, const struct turns *turns, int32_t position) {
  for (int64_t i = 0; i < turns->pairs; i++) {
    angles->cosine[i] = cos((double)position * turns->frequencies[i]);
    angles->sine[i] = sin((double)position * turns->frequencies[i]);
  }
}

static void open_turns(struct turns *turns, double theta) {
  turns->coarse_position = -1;
  for (int64_t i = 0; i < turns->pairs; i++)
    turns->frequencies[i] = pow(theta, -(double)i / (double)turns->pairs);
  for (int32_t b = 0; b < ROPE_FINE; b++) set_angles(&turns->fine[b], turns, b);
}

/* Cosines and sines of one row; position -1 turns by nothing. */
static void fill_row(const struct tape *tape, struct rope_record *tables, int64_t row,
                     struct turns *turns, int32_t position) {
  const int32_t place = position < 0 ? 0 : position, coarse = place / ROPE_FINE * ROPE_FINE;
  const struct angles *fine = &turns->fine[place - coarse], *whole = &turns->coarse;
  const int64_t pairs = turns->pairs;
  double cosine[ROPE_PAIRS], sine[ROPE_PAIRS];
  if (coarse != turns->coarse_position) set_angles(&turns->coarse, turns, coarse);
  turns->coarse_position = coarse;
  for (int64_t i = 0; i < pairs; i++) {
    cosine[i] = whole->cosine[i] * fine->cosine[i] - whole->sine[i] * fine->sine[i];
    sine[i] = whole->sine[i] * fine->cosine[i] + whole->cosine[i] * fine->sine[i];
  }
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

static void fill_rows(struct tape *tape, struct rope_record *tables, const struct rope *rope,
                      int64_t rows, struct turns *turns) {
  const int32_t *positions = rope->positions;
  const int64_t again = period(positions, rows);
  open_turns(turns, rope->theta);
  for (int64_t i = 0; i < rows; i++) {
    if (i >= again && positions[i] == positions[i - again])
      copy_row(tape, tables, i, i - again, turns->pairs);
    else
      fill_row(tape, tables, i, turns, positions[i]);
  }
}

static void fill_tables(struct tape *tape, struct rope_record *tables, const struct rope *rope,
                        int64_t rows, int64_t pairs) {
  struct turns turns = {.pairs = pairs};
  assert(pairs <= ROPE_PAIRS);
  tables->cosine = array_sums(tape, rows * pairs);
  tables->sine = array_sums(tape, rows * pairs);
  const size_t mark = arena_mark(tape->arena);
  turns.fine = tape_save(tape, ROPE_FINE * sizeof(*turns.fine));
  if (turns.fine) fill_rows(tape, tables, rope, rows, &turns);
  arena_reset(tape->arena, mark);
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
