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

static double square(const struct gradients_sum *sum, int64_t first, int64_t count) {
  float values[BLOCK];
  double total = 0;
  for (int64_t i = 0; i < count; i += BLOCK) {
    const int64_t size = count - i < BLOCK ? count - i : BLOCK;
    gradients_read(values, sum, first + i, size);
    total += square_block(values, size);
  }
  return total;
}

/* Whether this rank computes the units of a tensor: its owner, or each rank some. */
static bool computes(const struct gradients *gradients, int64_t tensor) {
  if (gradients->zero) return zero_owns(gradients->zero, tensor);
  const struct comm *axis = gradients->kinds[gradients->slots[tensor].kind].axis;
  return tensor % axis->size == axis->rank;
}

/* The rows of a slice, where this rank holds them. */
static struct gradients_unit slice_unit(const struct gradients *gradients, int64_t tensor,
                                        int64_t s) {
  const struct gradients_slot *slot = &gradients->slots[tensor];
  const struct vocab *vocab = slot->vocab;
  const struct split slice = vocab_slice(vocab, s);
  const int64_t rows = split_count(vocab->rows);
  const int64_t width = rows > 0 ? slot->count / rows : 0;
  return (struct gradients_unit){.tensor = tensor,
                                 .first = (slice.begin - vocab->rows.begin) * width,
                                 .count = split_count(slice) * width,
                                 .mine = s >= vocab->first_slice && s < vocab->end_slice &&
                                         computes(gradients, tensor)};
}

static int64_t unit_count(const struct gradients_slot *slot) {
  return slot->vocab ? slot->vocab->slices : 1;
}

void gradients_list_units(struct gradients *gradients) {
  struct gradients_unit *unit = gradients->unit_places;
  for (int64_t i = 0; i < gradients->tensors; i++) {
    const struct gradients_slot *slot = &gradients->slots[i];
    for (int64_t s = 0; s < unit_count(slot); s++)
      *unit++ = slot->vocab ? slice_unit(gradients, i, s)
                            : (struct gradients_unit){.tensor = i,
                                                      .count = slot->count,
                                                      .mine = computes(gradients, i)};
  }
}

static void square_units(struct gradients *gradients) {
#pragma omp parallel for schedule(dynamic)
  for (int64_t u = 0; u < gradients->units; u++) {
    const struct gradients_unit *unit = &gradients->unit_places[u];
    gradients->unit_squares[u] = 0;
    if (!unit->mine) continue;
    const struct gradients_sum sum = gradients_sum(gradients, unit->tensor);
    gradients->unit_squares[u] = square(&sum, unit->first, unit->count);
  }
}

enum status gradients_norm(struct gradients *gradients, double *norm, double *squares) {
  double *units = gradients->unit_squares;
  square_units(gradients);
  /* Each unit is not zero on one rank only: the sum is exact in any order. */
  TRY(comm_allreduce(gradients->grid->world, units, gradients->units, DTYPE_F64, COMM_SUM));
  for (int64_t i = 0, unit = 0; i < gradients->tensors; unit += unit_count(&gradients->slots[i++]))
    gradients->squares[i] = tree_sum_doubles(units + unit, 1, unit_count(&gradients->slots[i]));
  if (squares) memcpy(squares, gradients->squares, (size_t)gradients->tensors * sizeof *squares);
  *norm = sqrt(tree_sum_doubles(gradients->squares, 1, gradients->tensors));
  return STATUS_OK;
}
