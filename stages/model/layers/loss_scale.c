#include "stages/model/layers/loss_scale.h"

#include <assert.h>
#include <math.h>

#include "stages/model/tape/array.h"

struct loss_scale_record {
  struct record record;
  struct value *u;
  const float *share, *weight;
  const double *loss;
  int64_t positions;
};

/* The gradient of row b: the sum over its positions of share - weight * loss. */
static float slope(const struct loss_scale_record *kept, int64_t b) {
  double sum = 0;
  for (int64_t i = b * kept->positions; i < (b + 1) * kept->positions; i++)
    sum += (double)kept->share[i] - (double)kept->weight[i] * kept->loss[i];
  return (float)sum;
}

static void loss_scale_backward(struct tape *tape, const struct record *record) {
  const struct loss_scale_record *kept = (const struct loss_scale_record *)record;
  struct value *u = kept->u;
  if (!u->needs_gradient) return;
  bool add;
  void *du = tape_gradient(tape, u, &add);
  const size_t mark = arena_mark(tape->arena);
  float *slopes = tape_save(tape, (size_t)u->rows * sizeof *slopes);
  void *sums = array_sums(tape, u->rows);
  for (int64_t b = 0; slopes && b < u->rows; b++) slopes[b] = slope(kept, b);
  array_put_float_sums(tape, sums, slopes, u->rows);
  tape->kernels->convert_from_sum(du, sums, u->rows, add);
  arena_reset(tape->arena, mark);
}

static const struct record_kind loss_scale_kind = {"loss_scale", loss_scale_backward, NULL};

void loss_scale_forward(struct tape *tape, float *weight, struct value *u, const float *share,
                        const double *loss, int64_t positions) {
  assert(u->cols == 1 && array_is_contiguous(u));
  const size_t mark = arena_mark(tape->arena);
  float *values = tape_save(tape, (size_t)u->rows * sizeof *values);
  tape_output(tape, values, u);
  for (int64_t i = 0; values && i < u->rows * positions; i++)
    weight[i] = share[i] * (float)exp(-(double)values[i / positions]);
  arena_reset(tape->arena, mark);
  struct loss_scale_record *kept = tape_record(tape, &loss_scale_kind, sizeof(*kept), NULL, 0);
  if (!kept) return;
  kept->u = u;
  kept->share = share;
  kept->weight = weight;
  kept->loss = loss;
  kept->positions = positions;
}
