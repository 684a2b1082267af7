#include "stages/model/layers/dropout.h"

#include <assert.h>

#include "stages/model/tape/array.h"

struct dropout_record {
  struct record record;
  struct value *x, *y;
  const struct random_stream *streams;
  double p;
  int64_t positions;
};

static void dropout_backward(struct tape *tape, const struct record *record) {
  const struct dropout_record *kept = (const struct dropout_record *)record;
  struct value *x = kept->x;
  if (!kept->y->reached || !x->needs_gradient) return;
  bool add;
  void *dx = tape_gradient(tape, x, &add);
  tape->kernels->dropout_forward(dx, kept->y->gradient, kept->streams, kept->p, x->rows, x->cols,
                                 kept->positions, add);
}

static const struct record_kind dropout_kind = {"dropout", dropout_backward, NULL};

struct value *dropout_forward(struct tape *tape, struct value *x, double p,
                              const struct random_stream *streams, int64_t positions) {
  if (!tape->training || p <= 0) return x;
  assert(array_is_contiguous(x) && p < 1);
  struct value *y = tape_value(tape, x->rows, x->cols);
  tape->kernels->dropout_forward(y->data, x->data, streams, p, x->rows, x->cols, positions, false);
  struct dropout_record *kept = tape_record(tape, &dropout_kind, sizeof(*kept), NULL, 0);
  if (!kept) return y;
  kept->x = x;
  kept->y = y;
  kept->streams = streams;
  kept->p = p;
  kept->positions = positions;
  return y;
}
