#include <math.h>
#include <string.h>

#include "sharding/gradients_state.h"

enum { LANES = 8, BLOCK = 4096 };

/* <a, b>, lane by lane, so that the order is fixed and the loop is wide. */
static double dot_block(const float *a, const float *b, int64_t count) {
  double lanes[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int64_t l = 0; l < LANES; l++) lanes[l] += (double)a[i + l] * (double)b[i + l];
  for (int64_t l = 0; i < count; i++, l++) lanes[l] += (double)a[i] * (double)b[i];
  return tree_sum_doubles(lanes, 1, LANES);
}

static void read_block(float *values, const struct gradients *gradients, int64_t tensor,
                       enum gradients_operand operand, int64_t first, int64_t count) {
  const struct gradients_sum present = gradients_sum(gradients, tensor);
  const struct gradients_sum kept = {gradients->kept ? gradients->kept[tensor] : NULL, DTYPE_F32};
  gradients_read(values, operand == GRADIENTS_KEPT ? &kept : &present, first, count);
}

static double dot_unit(const struct gradients *gradients, const struct gradients_unit *unit,
                       enum gradients_operand a, enum gradients_operand b) {
  float left[BLOCK], right[BLOCK];
  double total = 0;
  for (int64_t i = 0, size; i < unit->count; i += size) {
    size = unit->count - i < BLOCK ? unit->count - i : BLOCK;
    read_block(left, gradients, unit->tensor, a, unit->first + i, size);
    if (a != b) read_block(right, gradients, unit->tensor, b, unit->first + i, size);
    total += dot_block(left, a != b ? right : left, size);
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

enum status gradients_dot(struct gradients *gradients, enum gradients_operand a,
                          enum gradients_operand b, double *total) {
  double *units = gradients->unit_squares;
#pragma omp parallel for schedule(dynamic)
  for (int64_t u = 0; u < gradients->units; u++) {
    const struct gradients_unit *unit = &gradients->unit_places[u];
    units[u] = unit->mine ? dot_unit(gradients, unit, a, b) : 0;
  }
  /* Each unit is not zero on one rank only: the sum is exact in any order. */
  TRY(comm_allreduce(gradients->grid->world, units, gradients->units, DTYPE_F64, COMM_SUM));
  for (int64_t i = 0, unit = 0; i < gradients->tensors; unit += unit_count(&gradients->slots[i++]))
    gradients->squares[i] = tree_sum_doubles(units + unit, 1, unit_count(&gradients->slots[i]));
  *total = tree_sum_doubles(gradients->squares, 1, gradients->tensors);
  return STATUS_OK;
}

enum status gradients_norm(struct gradients *gradients, double *norm, double *squares) {
  double total;
  TRY(gradients_dot(gradients, GRADIENTS_PRESENT, GRADIENTS_PRESENT, &total));
  if (squares) memcpy(squares, gradients->squares, (size_t)gradients->tensors * sizeof *squares);
  *norm = sqrt(total);
  return STATUS_OK;
}
