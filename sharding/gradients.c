#include "sharding/gradients.h"

#include <assert.h>
#include <mpi.h>
#include <string.h>

#include "sharding/add.h"
#include "sharding/gradients_state.h"

enum {
  CHUNK = 1 << 16,     /* elements that a thread works on at a time */
  IN_FLIGHT = 32 << 20 /* elements, unless the setup says otherwise */
};

static int kind_of(const struct gradients_tensor *tensor) {
  return tensor->vocab ? GRADIENTS_SLICED : GRADIENTS_REPLICATED;
}

static struct gradients_kind plan_kind(const struct gradients_setup *setup, int kind) {
  struct grid *grid = setup->grid;
  const int64_t steps = grid_micro_steps(grid);
  const bool sliced = kind == GRADIENTS_SLICED;
  struct gradients_kind plan = {.members = sliced ? grid->group.size : 1,
                                .stacks = 1,
                                .leaves = steps,
                                .depth = 1,
                                .axis = sliced ? &grid->across : grid->world};
  for (int64_t i = 0; i < setup->count; i++)
    if (kind_of(&setup->tensors[i]) == kind && !gradients_passes(setup, i))
      plan.total += gradients_padded(setup->tensors[i].count);
  if (!grid->canonical) return plan;
  if (steps == 1)
    plan.leaves = plan.members;
  else
    plan.stacks = plan.members;
  plan.depth = tree_depth(plan.leaves);
  return plan;
}

static int64_t units_of(const struct gradients_tensor *tensor) {
  return tensor->vocab ? tensor->vocab->slices : 1;
}

static void plan_slots(struct gradients *plan, const struct gradients_setup *setup,
                       struct arena *arena) {
  int64_t used[GRADIENTS_KINDS] = {0};
  for (int64_t i = 0; i < setup->count; i++) {
    const struct gradients_tensor *tensor = &setup->tensors[i];
    const int kind = kind_of(tensor);
    const size_t members = (size_t)plan->kinds[kind].members;
    const struct gradients_slot slot = {
        .count = tensor->count,
        .vocab = tensor->vocab,
        .kind = kind,
        .passes = gradients_passes(setup, i),
        .offset = used[kind],
        .pieces = arena_take_zeroed(arena, members * sizeof(*slot.pieces)),
        .states = arena_take_zeroed(arena, members * sizeof(*slot.states)),
    };
    if (plan->slots) plan->slots[i] = slot;
    if (!slot.passes) used[kind] += gradients_padded(tensor->count);
    plan->units += units_of(tensor);
  }
}

enum status gradients_init(struct gradients **gradients, const struct gradients_setup *setup,
                           struct arena *arena) {
  assert(setup->dtype == DTYPE_F32 || setup->dtype == DTYPE_BF16);
  struct gradients *g = arena_take(arena, sizeof *g);
  struct gradients plan = {.grid = setup->grid,
                           .zero = setup->zero,
                           .dtype = setup->dtype,
                           .tensors = setup->count,
                           .sent_most = setup->in_flight > 0 ? setup->in_flight : IN_FLIGHT};
  plan.slots = arena_take(arena, (size_t)setup->count * sizeof *plan.slots);
  plan.squares = arena_take(arena, (size_t)setup->count * sizeof *plan.squares);
  for (int i = 0; i < GRADIENTS_KINDS; i++) {
    struct gradients_kind *kind = &plan.kinds[i];
    *kind = plan_kind(setup, i);
    const size_t elements = (size_t)(kind->stacks * kind->depth * kind->total);
    kind->levels = arena_take_zeroed(arena, elements * dtype_bytes(setup->dtype));
  }
  plan_slots(&plan, setup, arena);
  plan.passing = arena_take(arena, (size_t)setup->count * sizeof *plan.passing);
  plan.unit_squares = arena_take(arena, (size_t)plan.units * sizeof *plan.unit_squares);
  plan.unit_places = arena_take(arena, (size_t)plan.units * sizeof *plan.unit_places);
  if (setup->keeps) gradients_keep_init(&plan, setup, arena);
  pieces_init(&plan.working, "working gradients");
  if (g) {
    *g = plan;
    gradients_list_units(g);
  }
  *gradients = g;
  return STATUS_OK;
}

void gradients_free(struct gradients *gradients) {
  if (gradients) pieces_free(&gradients->working);
}

size_t gradients_working_bytes(const struct gradients *gradients) {
  return pieces_bytes(&gradients->working);
}

double gradients_order_seconds(const struct gradients *gradients) {
  return gradients->order_seconds;
}

void gradients_begin(struct gradients *gradients, int64_t j) {
  gradients->micro_step = j;
  for (int64_t i = 0; i < gradients->tensors; i++) gradients->slots[i].done = 0;
}

/* Which leaf of its stack a member's contribution of this micro step is. */
static int64_t leaf_of(const struct gradients *gradients, const struct gradients_kind *kind,
                       int64_t member) {
  return kind->stacks > 1 || kind->members == 1 ? gradients->micro_step : member;
}

/* First element of the stack that a member's leaf goes to. */
static int64_t stack_of(const struct gradients_kind *kind, const struct gradients_slot *slot,
                        int64_t member) {
  return (kind->stacks > 1 ? member : 0) * kind->depth * kind->total + slot->offset;
}

/* The place in a buffer where a member's contribution can be made; NULL: in a piece of its own. All
 * members may be open at once: only in a stack of its own is a member's leaf a level. */
static float *place_of(struct gradients *gradients, const struct gradients_slot *slot,
                       int64_t member) {
  const struct gradients_kind *kind = gradients_kind_of(gradients, slot);
  if (gradients->dtype != DTYPE_F32 || slot->passes) return NULL;
  float *first = gradients_level(gradients, kind, stack_of(kind, slot, member));
  if (!gradients->grid->canonical || kind->leaves == 1) return first;
  if (kind->stacks != kind->members) return NULL;
  const struct tree_floats tree = {first, kind->total, kind->leaves};
  return tree_leaf_floats(&tree, leaf_of(gradients, kind, member));
}

/* Whether nothing was added to the only sum of fast mode in this step. */
static bool is_untouched(const struct gradients *gradients, const struct gradients_slot *slot) {
  const int64_t members = gradients->kinds[slot->kind].members;
  bool untouched = gradients->micro_step == 0 && slot->done == 0;
  for (int64_t r = 0; r < members; r++) untouched &= slot->states[r] == GRADIENTS_CLOSED;
  return untouched;
}

static void clear(float *values, int64_t count) {
#pragma omp parallel for if (count > CHUNK)
  for (int64_t i = 0; i < count; i += CHUNK)
    memset(values + i, 0, (size_t)(count - i < CHUNK ? count - i : CHUNK) * sizeof *values);
}

/* In fast mode contributions are made in the sum itself. */
static void count_order(struct gradients *gradients, double started) {
  if (gradients->grid->canonical) gradients->order_seconds += MPI_Wtime() - started;
}

enum status gradients_at(float **place, struct gradients *gradients, int64_t tensor,
                         int64_t member) {
  struct gradients_slot *slot = &gradients->slots[tensor];
  assert(member >= slot->done && slot->states[member] != GRADIENTS_GIVEN);
  float *here = place_of(gradients, slot, member);
  const bool in_sum = here && !gradients->grid->canonical;
  if (!here && !slot->pieces[member])
    TRY(pieces_take(&slot->pieces[member], &gradients->working, slot->count));
  *place = here ? here : slot->pieces[member];
  const double started = MPI_Wtime();
  if (slot->states[member] == GRADIENTS_CLOSED && (!in_sum || is_untouched(gradients, slot)))
    clear(*place, slot->count);
  count_order(gradients, started);
  slot->states[member] = GRADIENTS_OPEN;
  return STATUS_OK;
}

/* The tree that a contribution is added along: in fast mode the first is put down, and all others
 * are added to it. */
struct target {
  void *levels;
  int64_t stride, leaves, leaf;
  enum dtype dtype;
};

static struct target target_of(struct gradients *gradients, const struct gradients_slot *slot) {
  const struct gradients_kind *kind = gradients_kind_of(gradients, slot);
  struct target target = {.levels =
                              gradients_level(gradients, kind, stack_of(kind, slot, slot->done)),
                          .stride = kind->total,
                          .leaves = kind->leaves,
                          .leaf = leaf_of(gradients, kind, slot->done),
                          .dtype = gradients->dtype};
  if (gradients->grid->canonical) return target;
  target.leaves = 2;
  target.leaf = gradients->micro_step > 0 || slot->done > 0;
  return target;
}

static void add_chunk(const struct target *target, int64_t first, int64_t count,
                      const float *values) {
  if (target->dtype == DTYPE_F32)
    tree_add_floats(&(struct tree_floats){target->levels, target->stride, target->leaves},
                    target->leaf, first, count, values);
  else
    tree_add_bf16(&(struct tree_bf16){target->levels, target->stride, target->leaves}, target->leaf,
                  first, count, values);
}

static void give(const struct target *target, int64_t first, int64_t count, const float *values) {
#pragma omp parallel for if (count > CHUNK)
  for (int64_t i = 0; i < count; i += CHUNK)
    add_chunk(target, first + i, count - i < CHUNK ? count - i : CHUNK, values + i);
}

/* Nothing is done where zeros would be added and no sum is completed. */
static void give_zeros(const struct target *target, int64_t first, int64_t count) {
  static const float zeros[1024];
  const int64_t most = (int64_t)(sizeof zeros / sizeof *zeros);
  if (tree_place(target->leaves, target->leaf).merges == 1) return;
#pragma omp parallel for if (count > CHUNK)
  for (int64_t i = 0; i < count; i += most)
    add_chunk(target, first + i, count - i < most ? count - i : most, zeros);
}

void gradients_give(struct gradients *gradients, int64_t tensor, int64_t member, int64_t first,
                    int64_t count, const float *values) {
  struct gradients_slot *slot = &gradients->slots[tensor];
  assert(member == slot->done && slot->states[member] != GRADIENTS_OPEN);
  slot->states[member] = GRADIENTS_GIVEN;
  const struct target target = target_of(gradients, slot);
  if (values)
    give(&target, first, count, values);
  else
    give_zeros(&target, first, count);
}

/* Adds what was made for a member where it belongs. A tensor that nothing was added to contributes
 * zeros, like any other leaf. */
static void close_member(struct gradients *gradients, struct gradients_slot *slot, int64_t member) {
  const struct target target = target_of(gradients, slot);
  float *place = place_of(gradients, slot, member);
  const bool in_sum = place && !gradients->grid->canonical;
  const double started = MPI_Wtime();
  if (slot->states[member] == GRADIENTS_CLOSED && (!in_sum || is_untouched(gradients, slot)))
    give_zeros(&target, 0, slot->count);
  if (slot->states[member] == GRADIENTS_OPEN && !in_sum)
    give(&target, 0, slot->count, place ? place : slot->pieces[member]);
  count_order(gradients, started);
  pieces_return(&gradients->working, slot->pieces[member]);
  slot->pieces[member] = NULL;
  slot->states[member] = GRADIENTS_CLOSED;
}

/* A contribution that is passed on whole; one that nothing was added to is zeros. */
static enum status pass(struct gradients *gradients, int64_t tensor) {
  struct gradients_slot *slot = &gradients->slots[tensor];
  float *piece = NULL;
  TRY(gradients_at(&piece, gradients, tensor, 0));
  slot->pieces[0] = NULL;
  slot->states[0] = GRADIENTS_CLOSED;
  slot->done = 1;
  return gradients_pass(gradients, tensor, piece);
}

enum status gradients_done(struct gradients *gradients, int64_t tensor, int64_t member) {
  struct gradients_slot *slot = &gradients->slots[tensor];
  assert(member == slot->done);
  if (slot->passes) return pass(gradients, tensor);
  close_member(gradients, slot, member);
  slot->done++;
  const bool last = gradients->micro_step == grid_micro_steps(gradients->grid) - 1;
  if (!last || slot->done < gradients_kind_of(gradients, slot)->members) return STATUS_OK;
  return gradients_ready(gradients, tensor);
}

int64_t gradients_members_done(const struct gradients *gradients, int64_t tensor) {
  return gradients->slots[tensor].done;
}

enum status gradients_end(struct gradients *gradients) {
  for (int64_t i = 0; i < gradients->tensors; i++) {
    const struct gradients_slot *slot = &gradients->slots[i];
    const int64_t members = gradients_kind_of(gradients, slot)->members;
    while (slot->done < members) TRY(gradients_done(gradients, i, slot->done));
  }
  return STATUS_OK;
}

struct gradients_sum gradients_sum(const struct gradients *gradients, int64_t tensor) {
  const struct gradients_slot *slot = &gradients->slots[tensor];
  assert(!slot->passes);
  return (struct gradients_sum){
      gradients_level(gradients, &gradients->kinds[slot->kind], slot->offset), gradients->dtype};
}

void gradients_read(float *values, const struct gradients_sum *sum, int64_t first, int64_t count) {
  if (sum->dtype == DTYPE_F32)
    memcpy(values, (const float *)sum->values + first, (size_t)count * sizeof *values);
  else
    add_widen(values, (const uint16_t *)sum->values + first, count);
}

void gradients_add(const struct gradients_sum *sum, int64_t first, int64_t count,
                   const float *values) {
  if (sum->dtype == DTYPE_F32)
    add_arrays((float *)sum->values + first, values, count, DTYPE_F32);
  else
    add_rounded((uint16_t *)sum->values + first, values, count);
}
