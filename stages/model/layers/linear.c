#include "stages/model/layers/linear.h"

#include <assert.h>

#include "stages/model/tape/tangent.h"

struct linear_record {
  struct record record;
  struct value *x, *y;
  struct param *w, *b;
};

static void linear_backward(struct tape *tape, const struct record *record) {
  const struct linear_record *kept = (const struct linear_record *)record;
  const struct value *y = kept->y;
  struct value *x = kept->x;
  const int64_t n = y->rows, out = kept->w->rows, in = kept->w->cols;
  if (!y->reached) return;
  if (x->needs_gradient) {
    bool add;
    void *dx = tape_gradient(tape, x, &add);
    tape->kernels->linear_backward_input(dx, y->gradient, kept->w->data, n, out, in, x->stride,
                                         y->stride, add);
  }
  if (kept->w->gradient)
    tape->kernels->linear_backward_weight(kept->w->gradient, y->gradient, x->data, n, out, in,
                                          y->stride, x->stride);
  if (kept->b && kept->b->gradient)
    tape->kernels->linear_backward_bias(kept->b->gradient, y->gradient, n, out, y->stride);
}

static void linear_jvp(struct tape *tape, const struct record *record) {
  const struct linear_record *kept = (const struct linear_record *)record;
  const struct value *x = kept->x;
  if (!tangent_moves(x)) return;
  void *ty = tangent_open(tape, kept->y);
  tape->kernels->linear_forward(ty, tangent_of(tape, x), kept->w->data, NULL, x->rows,
                                kept->w->rows, kept->w->cols, kept->y->stride, x->stride);
}

static const struct record_kind linear_kind = {"linear", linear_backward, linear_jvp};

struct value *linear_forward(struct tape *tape, struct value *x, struct param *w, struct param *b) {
  assert(x->cols == w->cols && (!b || b->cols == w->rows));
  struct value *y = tape_value(tape, x->rows, w->rows);
  tape->kernels->linear_forward(y->data, x->data, w->data, b ? b->data : NULL, x->rows, w->rows,
                                w->cols, y->stride, x->stride);
  struct param *const params[] = {w, b};
  struct linear_record *kept = tape_record(tape, &linear_kind, sizeof(*kept), params, 2);
  if (!kept) return y;
  kept->x = x;
  kept->y = y;
  kept->w = w;
  kept->b = b;
  return y;
}
