#include "sharding/gradients_state.h"

static void add(float *restrict sum, const float *restrict values, int64_t count) {
  for (int64_t i = 0; i < count; i++) sum[i] += values[i];
}

void gradients_join_stacks(struct gradients *gradients, int64_t first, int64_t count) {
  const struct gradients_kind *kind = &gradients->kinds[GRADIENTS_SLICED];
  const int64_t stride = kind->depth * kind->total;
  float *sums = kind->levels + first;
  for (int64_t distance = 1; distance < kind->stacks; distance *= 2)
    for (int64_t s = 0; s + distance < kind->stacks; s += 2 * distance)
      add(sums + s * stride, sums + (s + distance) * stride, count);
}

enum status gradients_finish(struct gradients *gradients) {
  gradients_join_stacks(gradients, 0, gradients->kinds[GRADIENTS_SLICED].total);
  for (int i = 0; i < GRADIENTS_KINDS; i++) {
    const struct gradients_kind *kind = &gradients->kinds[i];
    if (split_power_of_two(kind->axis->size)) /* the fastest as well */
      TRY(comm_tree_sum(kind->axis, kind->levels, kind->total, DTYPE_F32));
    else
      TRY(comm_allreduce(kind->axis, kind->levels, kind->total, DTYPE_F32, COMM_SUM));
  }
  return STATUS_OK;
}
