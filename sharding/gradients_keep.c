#include <assert.h>
#include <math.h>

#include "sharding/gradients_state.h"

/* While only sizes are known, owners may not be. */
static bool may_own(const struct gradients_setup *setup, int64_t tensor) {
  return !setup->zero->owner || zero_owns(setup->zero, tensor);
}

void gradients_keep_init(struct gradients *plan, const struct gradients_setup *setup,
                         struct arena *arena) {
  assert(setup->zero);
  plan->kept = arena_take_zeroed(arena, (size_t)setup->count * sizeof *plan->kept);
  for (int64_t i = 0; i < setup->count; i++) {
    assert(!setup->tensors[i].everywhere);
    if (!may_own(setup, i)) continue;
    float *values = arena_take(arena, (size_t)setup->tensors[i].count * sizeof *values);
    if (plan->kept) plan->kept[i] = values;
  }
}

void gradients_keep(struct gradients *gradients) {
#pragma omp parallel for schedule(dynamic)
  for (int64_t u = 0; u < gradients->units; u++) {
    const struct gradients_unit *unit = &gradients->unit_places[u];
    if (!unit->mine) continue;
    const struct gradients_sum sum = gradients_sum(gradients, unit->tensor);
    gradients_read(gradients->kept[unit->tensor] + unit->first, &sum, unit->first, unit->count);
  }
}

/* Adds `share` of the kept sums to the present ones; the kept ones are spoiled. */
static void add_kept(struct gradients *gradients, float share) {
#pragma omp parallel for schedule(dynamic)
  for (int64_t u = 0; u < gradients->units; u++) {
    const struct gradients_unit *unit = &gradients->unit_places[u];
    if (!unit->mine) continue;
    const struct gradients_sum sum = gradients_sum(gradients, unit->tensor);
    float *kept = gradients->kept[unit->tensor] + unit->first;
    for (int64_t i = 0; i < unit->count; i++) kept[i] *= share;
    gradients_add(&sum, unit->first, unit->count, kept);
  }
}

enum status gradients_mend(struct gradients *gradients, double *cosine) {
  double present, kept, dot;
  TRY(gradients_dot(gradients, GRADIENTS_PRESENT, GRADIENTS_PRESENT, &present));
  TRY(gradients_dot(gradients, GRADIENTS_KEPT, GRADIENTS_KEPT, &kept));
  TRY(gradients_dot(gradients, GRADIENTS_PRESENT, GRADIENTS_KEPT, &dot));
  add_kept(gradients, dot < 0 ? (float)(1 - dot / kept) : 1);
  *cosine = present > 0 && kept > 0 ? dot / sqrt(present * kept) : 0;
  return STATUS_OK;
}
