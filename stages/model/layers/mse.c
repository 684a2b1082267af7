#include "stages/model/layers/mse.h"

#include <assert.h>

#include "stages/model/tape/array.h"

struct mse_record {
  struct record record;
  struct value *x;
  const struct value *target;
  const float *weight;
};

static void mse_backward(struct tape *tape, const struct record *record) {
  const struct mse_record *kept = (const struct mse_record *)record;
  struct value *x = kept->x;
  if (!x->needs_gradient) return;
  bool add;
  void *dx = tape_gradient(tape, x, &add);
  const size_t mark = arena_mark(tape->arena);
  void *weight = array_sums(tape, x->rows);
  array_put_float_sums(tape, weight, kept->weight, x->rows);
  tape->kernels->mse_backward(dx, x->data, kept->target->data, weight, x->rows, x->cols, add);
  arena_reset(tape->arena, mark);
}

static const struct record_kind mse_kind = {"mse", mse_backward, NULL};

void mse_forward(struct tape *tape, double *loss, struct value *x, const struct value *target,
                 const float *weight) {
  assert(array_is_contiguous(x) && array_is_contiguous(target));
  assert(x->rows == target->rows && x->cols == target->cols);
  const size_t mark = arena_mark(tape->arena);
  void *sums = array_sums(tape, x->rows);
  tape->kernels->mse_forward(sums, x->data, target->data, x->rows, x->cols);
  array_get_sums(tape, loss, sums, x->rows);
  arena_reset(tape->arena, mark);
  struct mse_record *kept = tape_record(tape, &mse_kind, sizeof(*kept), NULL, 0);
  if (!kept) return;
  kept->x = x;
  kept->target = target;
  kept->weight = weight;
}
