#include "stages/model/layers/layernorm.h"

#include <assert.h>

#include "stages/model/tape/array.h"

struct layernorm_record {
  struct record record;
  struct value *x, *y;
  struct param *gain, *bias;
  void *mean, *scale;
};

static void layernorm_backward(struct tape *tape, const struct record *record) {
  const struct layernorm_record *kept = (const struct layernorm_record *)record;
  struct value *x = kept->x;
  const struct param *gain = kept->gain, *bias = kept->bias;
  if (!kept->y->reached) return;
  bool add = false;
  void *dx = x->needs_gradient ? tape_gradient(tape, x, &add) : NULL;
  tape->kernels->layernorm_backward(dx, gain ? gain->gradient : NULL, bias ? bias->gradient : NULL,
                                    kept->y->gradient, kept->mean, kept->scale, x->data,
                                    gain ? gain->data : NULL, x->rows, x->cols, x->stride, add);
}

static const struct record_kind layernorm_kind = {"layernorm", layernorm_backward, NULL};

struct value *layernorm_forward(struct tape *tape, struct value *x, struct param *gain,
                                struct param *bias, double epsilon) {
  assert((!gain || gain->cols == x->cols) && (!bias || bias->cols == x->cols));
  struct value *y = tape_value(tape, x->rows, x->cols);
  void *mean = array_sums(tape, x->rows), *scale = array_sums(tape, x->rows);
  tape->kernels->layernorm_forward(y->data, mean, scale, x->data, gain ? gain->data : NULL,
                                   bias ? bias->data : NULL, x->rows, x->cols, x->stride, epsilon);
  struct layernorm_record *kept =
      tape_record(tape, &layernorm_kind, sizeof(*kept), (struct param *const[]){gain, bias}, 2);
  if (!kept) return y;
  kept->x = x;
  kept->y = y;
  kept->gain = gain;
  kept->bias = bias;
  kept->mean = mean;
  kept->scale = scale;
  return y;
}
