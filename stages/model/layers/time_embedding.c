#include "stages/model/layers/time_embedding.h"

#include <assert.h>
#include <math.h>

#include "stages/model/tape/array.h"

struct value *time_embedding_forward(struct tape *tape, const double *times, int64_t n, int64_t dim,
                                     double max_period) {
  assert(dim > 0 && dim % 2 == 0);
  const int64_t half = dim / 2;
  struct value *y = tape_constant(tape, n, dim);
  const size_t mark = arena_mark(tape->arena);
  float *rows = tape_save(tape, (size_t)(n * dim) * sizeof(*rows));
  for (int64_t i = 0; rows && i < n * half; i++) {
    const int64_t row = i / half, k = i % half;
    const double angle = times[row] * pow(max_period, -(double)k / (double)half);
    rows[row * dim + k] = (float)cos(angle);
    rows[row * dim + half + k] = (float)sin(angle);
  }
  tape->kernels->convert_from_float(y->data, rows, n * dim);
  arena_reset(tape->arena, mark);
  return y;
}
