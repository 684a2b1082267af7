#include "stages/model/layers/combine.h"

#include <assert.h>

#include "stages/model/tape/array.h"
#include "stages/model/tape/tangent.h"

struct combine_record {
  struct record record;
  struct value *a, *b, *y;
  double factor;
};

static struct value *leave(struct tape *tape, const struct record_kind *kind,
                           const struct combine_record *described) {
  struct combine_record *kept = tape_record(tape, kind, sizeof(*kept), NULL, 0);
  if (!kept) return described->y;
  const struct record head = kept->record;
  *kept = *described;
  kept->record = head;
  return kept->y;
}

static void copy_into(struct tape *tape, struct value *y, int64_t column, const struct value *x,
                      bool add) {
  tape->kernels->copy_rows(array_at(tape, y->data, column), x->data, x->rows, x->cols, y->stride,
                           x->stride, add);
}

static void add_backward(struct tape *tape, const struct record *record) {
  const struct combine_record *kept = (const struct combine_record *)record;
  if (!kept->y->reached) return;
  array_add_gradient(tape, kept->a, kept->y->gradient, kept->y->stride);
  array_add_gradient(tape, kept->b, kept->y->gradient, kept->y->stride);
}

static void add_jvp(struct tape *tape, const struct record *record) {
  const struct combine_record *kept = (const struct combine_record *)record;
  const struct value *a = kept->a, *b = kept->b, *y = kept->y;
  if (!tangent_moves(a) && !tangent_moves(b)) return;
  void *ty = tangent_open(tape, kept->y);
  tape->kernels->copy_rows(ty, tangent_or_zeros(tape, a), y->rows, y->cols, y->stride, a->stride,
                           false);
  tape->kernels->copy_rows(ty, tangent_or_zeros(tape, b), y->rows, y->cols, y->stride, b->stride,
                           true);
}

static const struct record_kind add_kind = {"add", add_backward, add_jvp};

struct value *combine_add(struct tape *tape, struct value *a, struct value *b) {
  assert(a->rows == b->rows && a->cols == b->cols);
  struct value *y = tape_value(tape, a->rows, a->cols);
  if (array_is_contiguous(a) && array_is_contiguous(b)) {
    tape->kernels->add(y->data, a->data, b->data, y->rows * y->cols);
  } else {
    copy_into(tape, y, 0, a, false);
    copy_into(tape, y, 0, b, true);
  }
  return leave(tape, &add_kind, &(struct combine_record){.a = a, .b = b, .y = y});
}

static void scale_backward(struct tape *tape, const struct record *record) {
  const struct combine_record *kept = (const struct combine_record *)record;
  struct value *x = kept->a;
  if (!kept->y->reached || !x->needs_gradient) return;
  bool add;
  void *dx = tape_gradient(tape, x, &add);
  tape->kernels->scale(dx, kept->y->gradient, kept->factor, x->rows * x->cols, add);
}

static const struct record_kind scale_kind = {"scale", scale_backward, NULL};

struct value *combine_scale(struct tape *tape, struct value *x, double factor) {
  assert(array_is_contiguous(x));
  struct value *y = tape_value(tape, x->rows, x->cols);
  tape->kernels->scale(y->data, x->data, factor, x->rows * x->cols, false);
  return leave(tape, &scale_kind, &(struct combine_record){.a = x, .y = y, .factor = factor});
}

static void columns_backward(struct tape *tape, const struct record *record) {
  const struct combine_record *kept = (const struct combine_record *)record;
  const struct value *y = kept->y;
  if (!y->reached) return;
  array_add_gradient(tape, kept->a, y->gradient, y->stride);
  array_add_gradient(tape, kept->b, array_at(tape, y->gradient, kept->a->cols), y->stride);
}

static const struct record_kind columns_kind = {"columns", columns_backward, NULL};

struct value *combine_columns(struct tape *tape, struct value *a, struct value *b) {
  assert(a->rows == b->rows);
  struct value *y = tape_value(tape, a->rows, a->cols + b->cols);
  copy_into(tape, y, 0, a, false);
  copy_into(tape, y, a->cols, b, false);
  return leave(tape, &columns_kind, &(struct combine_record){.a = a, .b = b, .y = y});
}
