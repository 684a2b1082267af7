#include "stages/model/layers/rmsnorm.h"

#include <assert.h>

#include "stages/model/tape/array.h"
#include "stages/model/tape/tangent.h"

struct rmsnorm_record {
  struct record record;
  struct value *x, *y;
  struct param *gain;
  void *scale;
  int64_t groups;
};

static void rmsnorm_backward(struct tape *tape, const struct record *record) {
  const struct rmsnorm_record *kept = (const struct rmsnorm_record *)record;
  struct value *x = kept->x;
  const struct param *gain = kept->gain;
  if (!kept->y->reached) return;
  bool add = false;
  void *dx = x->needs_gradient ? tape_gradient(tape, x, &add) : NULL;
  tape->kernels->rmsnorm_backward(dx, gain ? gain->gradient : NULL, kept->y->gradient, kept->scale,
                                  x->data, gain ? gain->data : NULL, x->rows, kept->groups,
                                  x->cols / kept->groups, x->stride, add);
}

static void rmsnorm_jvp(struct tape *tape, const struct record *record) {
  const struct rmsnorm_record *kept = (const struct rmsnorm_record *)record;
  const struct value *x = kept->x;
  if (!tangent_moves(x)) return;
  void *ty = tangent_open(tape, kept->y);
  tape->kernels->rmsnorm_jvp(ty, tangent_of(tape, x), kept->scale, x->data,
                             kept->gain ? kept->gain->data : NULL, x->rows, kept->groups,
                             x->cols / kept->groups, x->stride);
}

static const struct record_kind rmsnorm_kind = {"rmsnorm", rmsnorm_backward, rmsnorm_jvp};

struct value *rmsnorm_forward(struct tape *tape, struct value *x, struct param *gain,
                              int64_t groups, double epsilon) {
  assert(x->cols % groups == 0 && (!gain || gain->cols == x->cols / groups));
  struct value *y = tape_value(tape, x->rows, x->cols);
  void *scale = array_sums(tape, x->rows * groups);
  tape->kernels->rmsnorm_forward(y->data, scale, x->data, gain ? gain->data : NULL, x->rows, groups,
                                 x->cols / groups, x->stride, epsilon);
  struct rmsnorm_record *kept =
      tape_record(tape, &rmsnorm_kind, sizeof(*kept), (struct param *const[]){gain}, 1);
  if (!kept) return y;
  kept->x = x;
  kept->y = y;
  kept->gain = gain;
  kept->scale = scale;
  kept->groups = groups;
  return y;
}
