#include "sharding/gradients.h"

#include <assert.h>
#include <string.h>

#include "sharding/gradients_state.h"

static int kind_of(const struct gradients_tensor *tensor) {
  return tensor->vocab ? GRADIENTS_SLICED : GRADIENTS_REPLICATED;
}

static struct gradients_kind plan_kind(struct grid *grid, int kind,
                                       const struct gradients_tensor *tensors, int64_t count) {
  const int64_t steps = grid_micro_steps(grid);
  const bool sliced = kind == GRADIENTS_SLICED;
  struct gradients_kind plan = {.members = sliced ? grid->group.size : 1,
                                .stacks = 1,
                                .leaves = steps,
                                .depth = 1,
                                .axis = sliced ? &grid->across : grid->world};
  for (int64_t i = 0; i < count; i++)
    if (kind_of(&tensors[i]) == kind) plan.total += gradients_padded(tensors[i].count);
  if (!grid->canonical) return plan;
  if (steps == 1)
    plan.leaves = plan.members;
  else
    plan.stacks = plan.members;
  plan.depth = tree_depth(plan.leaves);
  return plan;
}

/* Leaves of their own, one for each member, are needed where a leaf is added to an earlier one. */
static float *take_working(const struct grid *grid, const struct gradients_kind *kind,
                           const struct gradients_tensor *tensor, struct arena *arena) {
  if (tensor->tiled || !grid->canonical || kind->leaves == 1) return NULL;
  return arena_take(arena, (size_t)(kind->members * tensor->count) * sizeof(float));
}

static int64_t units_of(const struct gradients_tensor *tensor) {
  return tensor->vocab ? tensor->vocab->slices : 1;
}

static float *take_levels(const struct gradients_kind *kind, struct arena *arena) {
  return arena_take_zeroed(arena,
                           (size_t)(kind->stacks * kind->depth * kind->total) * sizeof(float));
}

enum status gradients_init(struct gradients **gradients, struct grid *grid, const struct zero *zero,
                           const struct gradients_tensor *tensors, int64_t count,
                           struct arena *arena) {
  struct gradients *g = arena_take(arena, sizeof *g);
  struct gradients plan = {.grid = grid, .zero = zero, .tensors = count};
  int64_t used[GRADIENTS_KINDS] = {0};
  plan.slots = arena_take(arena, (size_t)count * sizeof *plan.slots);
  plan.squares = arena_take(arena, (size_t)count * sizeof *plan.squares);
  for (int i = 0; i < GRADIENTS_KINDS; i++) {
    plan.kinds[i] = plan_kind(grid, i, tensors, count);
    plan.kinds[i].levels = take_levels(&plan.kinds[i], arena);
  }
  for (int64_t i = 0; i < count; i++) {
    const int kind = kind_of(&tensors[i]);
    const struct gradients_slot slot = {
        .count = tensors[i].count,
        .vocab = tensors[i].vocab,
        .kind = kind,
        .offset = used[kind],
        .working = take_working(grid, &plan.kinds[kind], &tensors[i], arena),
        .states = arena_take_zeroed(arena, (size_t)plan.kinds[kind].members * sizeof(*slot.states)),
    };
    if (plan.slots) plan.slots[i] = slot;
    used[kind] += gradients_padded(tensors[i].count);
    plan.units += units_of(&tensors[i]);
  }
  plan.unit_squares = arena_take(arena, (size_t)plan.units * sizeof *plan.unit_squares);
  if (g) *g = plan;
  *gradients = g;
  return STATUS_OK;
}

void gradients_free(struct gradients *gradients) {
  (void)gradients; /* all of it is in the arena */
}

void gradients_begin(struct gradients *gradients, int64_t j) {
  gradients->micro_step = j;
  for (int64_t i = 0; i < gradients->tensors; i++) gradients->slots[i].done = 0;
}

/* The stack that a member's leaf goes to. */
static struct tree_floats stack_of(const struct gradients_kind *kind,
                                   const struct gradients_slot *slot, int64_t member) {
  const int64_t stack = kind->stacks > 1 ? member : 0;
  return (struct tree_floats){kind->levels + stack * kind->depth * kind->total + slot->offset,
                              kind->total, kind->leaves};
}

static int64_t leaf_of(const struct gradients *gradients, const struct gradients_kind *kind,
                       int64_t member) {
  return kind->stacks > 1 || kind->members == 1 ? gradients->micro_step : member;
}

static bool is_first(const struct gradients *gradients, int64_t member) {
  return gradients->micro_step == 0 && member == 0;
}

/* All members may be open at once: only in a stack of its own is a member's leaf a level. */
static float *leaf_at(struct gradients *gradients, struct gradients_slot *slot, int64_t member) {
  const struct gradients_kind *kind = gradients_kind_of(gradients, slot);
  if (!gradients->grid->canonical || kind->leaves == 1) return kind->levels + slot->offset;
  const struct tree_floats stack = stack_of(kind, slot, member);
  const bool own_stack = kind->stacks == kind->members;
  float *leaf = own_stack ? tree_leaf_floats(&stack, leaf_of(gradients, kind, member)) : NULL;
  return leaf ? leaf : slot->working + member * slot->count;
}

/* Whether nothing was added to the only sum of fast mode in this step. */
static bool is_untouched(const struct gradients *gradients, const struct gradients_slot *slot) {
  const int64_t members = gradients->kinds[slot->kind].members;
  bool untouched = gradients->micro_step == 0 && slot->done == 0;
  for (int64_t r = 0; r < members; r++) untouched &= slot->states[r] == GRADIENTS_CLOSED;
  return untouched;
}

float *gradients_at(struct gradients *gradients, int64_t tensor, int64_t member) {
  struct gradients_slot *slot = &gradients->slots[tensor];
  assert(member >= slot->done && slot->states[member] != GRADIENTS_GIVEN);
  float *leaf = leaf_at(gradients, slot, member);
  assert(leaf);
  if (slot->states[member] == GRADIENTS_CLOSED &&
      (gradients->grid->canonical || is_untouched(gradients, slot)))
    memset(leaf, 0, (size_t)slot->count * sizeof *leaf);
  slot->states[member] = GRADIENTS_OPEN;
  return leaf;
}

static void add(float *restrict sum, const float *restrict values, int64_t count) {
  for (int64_t i = 0; i < count; i++) sum[i] += values[i];
}

static void give(struct gradients *gradients, struct gradients_slot *slot, int64_t first,
                 int64_t count, const float *values) {
  const struct gradients_kind *kind = gradients_kind_of(gradients, slot);
  const struct tree_floats stack = stack_of(kind, slot, slot->done);
  if (gradients->grid->canonical)
    tree_add_floats(&stack, leaf_of(gradients, kind, slot->done), first, count, values);
  else if (is_first(gradients, slot->done))
    memcpy(stack.levels + first, values, (size_t)count * sizeof *values);
  else
    add(stack.levels + first, values, count);
}

void gradients_give(struct gradients *gradients, int64_t tensor, int64_t member, int64_t first,
                    int64_t count, const float *values) {
  struct gradients_slot *slot = &gradients->slots[tensor];
  assert(member == slot->done && slot->states[member] != GRADIENTS_OPEN);
  slot->states[member] = GRADIENTS_GIVEN;
  give(gradients, slot, first, count, values);
}

/* A tensor that nothing was added to contributes zeros, like any other leaf. */
static void give_zeros(struct gradients *gradients, struct gradients_slot *slot) {
  static const float zeros[1024];
  const int64_t most = (int64_t)(sizeof zeros / sizeof *zeros);
  if (!gradients->grid->canonical && !is_untouched(gradients, slot)) return;
  for (int64_t i = 0; i < slot->count; i += most)
    give(gradients, slot, i, slot->count - i < most ? slot->count - i : most, zeros);
}

enum status gradients_done(struct gradients *gradients, int64_t tensor, int64_t member) {
  struct gradients_slot *slot = &gradients->slots[tensor];
  assert(member == slot->done);
  if (slot->states[member] == GRADIENTS_CLOSED)
    give_zeros(gradients, slot);
  else if (slot->states[member] == GRADIENTS_OPEN && gradients->grid->canonical)
    give(gradients, slot, 0, slot->count, leaf_at(gradients, slot, member));
  slot->states[member] = GRADIENTS_CLOSED;
  slot->done++;
  const bool last = gradients->micro_step == grid_micro_steps(gradients->grid) - 1;
  if (!last || slot->done < gradients_kind_of(gradients, slot)->members) return STATUS_OK;
  return gradients_ready(gradients, slot);
}

enum status gradients_end(struct gradients *gradients) {
  for (int64_t i = 0; i < gradients->tensors; i++) {
    const struct gradients_slot *slot = &gradients->slots[i];
    const int64_t members = gradients_kind_of(gradients, slot)->members;
    while (slot->done < members) TRY(gradients_done(gradients, i, slot->done));
  }
  return STATUS_OK;
}

float *gradients_sum(struct gradients *gradients, int64_t tensor) {
  const struct gradients_slot *slot = &gradients->slots[tensor];
  return gradients_kind_of(gradients, slot)->levels + slot->offset;
}
