#include "stages/model/layers/feedforward.h"

#include <assert.h>

#include "stages/model/tape/array.h"
#include "stages/model/tape/tangent.h"

struct feedforward_record {
  struct record record;
  struct value *x, *y;
  enum activation activation;
};

static struct value *leave(struct tape *tape, const struct record_kind *kind, struct value *x,
                           struct value *y, enum activation activation) {
  struct feedforward_record *kept = tape_record(tape, kind, sizeof(*kept), NULL, 0);
  if (!kept) return y;
  kept->x = x;
  kept->y = y;
  kept->activation = activation;
  return y;
}

static void activation_backward(struct tape *tape, const struct record *record) {
  const struct feedforward_record *kept = (const struct feedforward_record *)record;
  struct value *x = kept->x;
  if (!kept->y->reached || !x->needs_gradient) return;
  bool add;
  void *dx = tape_gradient(tape, x, &add);
  tape->kernels->activation_backward(dx, kept->y->gradient, x->data, kept->activation,
                                     x->rows * x->cols, add);
}

static void gated_backward(struct tape *tape, const struct record *record) {
  const struct feedforward_record *kept = (const struct feedforward_record *)record;
  struct value *x = kept->x;
  if (!kept->y->reached || !x->needs_gradient) return;
  bool add;
  void *dx = tape_gradient(tape, x, &add);
  tape->kernels->gated_backward(dx, kept->y->gradient, x->data, kept->activation, x->rows,
                                x->cols / 2, add);
}

/* A pointwise slope serves both directions. */
static void activation_jvp(struct tape *tape, const struct record *record) {
  const struct feedforward_record *kept = (const struct feedforward_record *)record;
  const struct value *x = kept->x;
  if (!tangent_moves(x)) return;
  void *ty = tangent_open(tape, kept->y);
  tape->kernels->activation_backward(ty, tangent_of(tape, x), x->data, kept->activation,
                                     x->rows * x->cols, false);
}

static void gated_jvp(struct tape *tape, const struct record *record) {
  const struct feedforward_record *kept = (const struct feedforward_record *)record;
  const struct value *x = kept->x;
  if (!tangent_moves(x)) return;
  void *ty = tangent_open(tape, kept->y);
  tape->kernels->gated_jvp(ty, tangent_of(tape, x), x->data, kept->activation, x->rows,
                           x->cols / 2);
}

static const struct record_kind activation_kind = {"activation", activation_backward,
                                                   activation_jvp};
static const struct record_kind gated_kind = {"gated", gated_backward, gated_jvp};

struct value *feedforward_activation(struct tape *tape, struct value *x, enum activation kind) {
  assert(array_is_contiguous(x));
  struct value *y = tape_value(tape, x->rows, x->cols);
  tape->kernels->activation_forward(y->data, x->data, kind, x->rows * x->cols);
  return leave(tape, &activation_kind, x, y, kind);
}

struct value *feedforward_gated(struct tape *tape, struct value *x, enum activation kind) {
  assert(array_is_contiguous(x) && x->cols % 2 == 0);
  struct value *y = tape_value(tape, x->rows, x->cols / 2);
  tape->kernels->gated_forward(y->data, x->data, kind, x->rows, x->cols / 2);
  return leave(tape, &gated_kind, x, y, kind);
}
