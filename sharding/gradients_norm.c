#include <math.h>
#include <string.h>

#include "sharding/gradients_state.h"

enum { LANES = 8, BLOCK = 4096 };

/* Sum of squares of one block: lane by lane, so that the order is fixed and the loop is wide. */
static double square_block(const float *values, int64_t count) {
  double lanes[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int64_t l = 0; l < LANES; l++) lanes[l] += (double)values[i + l] * (double)values[i + l];
  for (int64_t l = 0; i < count; i++, l++) lanes[l] += (double)values[i] * (double)values[i];
  return tree_sum_doubles(lanes, 1, LANES);
}

static double square(const float *values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i += BLOCK)
    sum += square_block(values + i, count - i < BLOCK ? count - i : BLOCK);
  return sum;
}

/* Whether this rank computes the units of a tensor: its owner, or each rank some. */
static bool computes(const struct gradients *gradients, int64_t tensor) {
  if (gradients->zero) return zero_owns(gradients->zero, tensor);
  const struct comm *axis = gradients->kinds[gradients->slots[tensor].kind].axis;
  return tensor % axis->size == axis->rank;
}

static void square_slices(double *units, const float *sum, const struct gradients_slot *slot) {
  const struct vocab *vocab = slot->vocab;
  const int64_t rows = split_count(vocab->rows);
  const int64_t width = rows > 0 ? slot->count / rows : 0;
  for (int64_t s = vocab->first_slice; s < vocab->end_slice; s++) {
    const struct split slice = vocab_slice(vocab, s);
    units[s] = square(sum + (slice.begin - vocab->rows.begin) * width, split_count(slice) * width);
  }
}

static int64_t unit_count(const struct gradients_slot *slot) {
  return slot->vocab ? slot->vocab->slices : 1;
}

enum status gradients_norm(struct gradients *gradients, double *norm, double *squares) {
  double *units = gradients->unit_squares;
  memset(units, 0, (size_t)gradients->units * sizeof *units);
  for (int64_t i = 0, unit = 0; i < gradients->tensors;
       unit += unit_count(&gradients->slots[i++])) {
    const struct gradients_slot *slot = &gradients->slots[i];
    const float *sum = gradients_sum(gradients, i);
    if (!computes(gradients, i)) continue;
    if (slot->vocab)
      square_slices(units + unit, sum, slot);
    else
      units[unit] = square(sum, slot->count);
  }
  /* Each unit is not zero on one rank only: the sum is exact in any order. */
  TRY(comm_allreduce(gradients->grid->world, units, gradients->units, DTYPE_F64, COMM_SUM));
  for (int64_t i = 0, unit = 0; i < gradients->tensors; unit += unit_count(&gradients->slots[i++]))
    gradients->squares[i] = tree_sum_doubles(units + unit, 1, unit_count(&gradients->slots[i]));
  if (squares) memcpy(squares, gradients->squares, (size_t)gradients->tensors * sizeof *squares);
  *norm = sqrt(tree_sum_doubles(gradients->squares, 1, gradients->tensors));
  return STATUS_OK;
}
