#include "sharding/zero.h"

#include <stdlib.h>

static int dearer_first(const void *a, const void *b) {
  const struct zero_cost *x = a;
  const struct zero_cost *y = b;
  if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
  return x->tensor < y->tensor ? -1 : 1;
}

static int least_loaded(const double *loads, int ranks) {
  int least = 0;
  for (int r = 1; r < ranks; r++)
    if (loads[r] < loads[least]) least = r;
  return least;
}

void zero_assign(int *owner, struct zero_cost *items, int64_t count, double *loads, int ranks) {
  qsort(items, (size_t)count, sizeof *items, dearer_first);
  for (int64_t i = 0; i < count; i++) {
    const int rank = least_loaded(loads, ranks);
    owner[items[i].tensor] = rank;
    loads[rank] += items[i].cost;
  }
}

static int64_t pick(struct zero_cost *items, const struct zero_tensor *tensors, int64_t count,
                    bool sliced) {
  int64_t picked = 0;
  for (int64_t i = 0; i < count; i++)
    if (tensors[i].sliced == sliced) items[picked++] = (struct zero_cost){tensors[i].cost, i};
  return picked;
}

struct work {
  struct zero_cost *items; /* [tensors] */
  double *across;          /* load of each rank of the across axis */
  double *world;           /* load of each rank of the world */
};

static void assign(struct zero *zero, const struct zero_tensor *tensors, const struct work *work) {
  const int ranks = zero->grid->world->size;
  const int group = zero->grid->group.size;
  int64_t count = pick(work->items, tensors, zero->tensors, true);
  zero_assign(zero->owner, work->items, count, work->across, ranks / group);
  for (int r = 0; r < ranks; r++) work->world[r] = work->across[r / group];
  count = pick(work->items, tensors, zero->tensors, false);
  zero_assign(zero->owner, work->items, count, work->world, ranks);
}

enum status zero_init(struct zero *zero, struct grid *grid, const struct zero_tensor *tensors,
                      int64_t count, struct arena *arena) {
  const size_t ranks = (size_t)grid->world->size;
  *zero = (struct zero){.grid = grid, .tensors = count};
  zero->owner = arena_take(arena, (size_t)count * sizeof *zero->owner);
  zero->sliced = arena_take(arena, (size_t)count * sizeof *zero->sliced);
  const size_t mark = arena_mark(arena);
  const struct work work = {
      .items = arena_take(arena, (size_t)count * sizeof *work.items),
      .across = arena_take_zeroed(arena, ranks * sizeof *work.across),
      .world = arena_take(arena, ranks * sizeof *work.world),
  };
  if (!arena_is_measuring(arena)) {
    for (int64_t i = 0; i < count; i++) zero->sliced[i] = tensors[i].sliced;
    assign(zero, tensors, &work);
  }
  arena_reset(arena, mark);
  return STATUS_OK;
}

struct comm *zero_axis(const struct zero *zero, int64_t tensor) {
  return zero->sliced[tensor] ? &zero->grid->across : zero->grid->world;
}

bool zero_owns(const struct zero *zero, int64_t tensor) {
  return zero->owner[tensor] == zero_axis(zero, tensor)->rank;
}

enum status zero_share(struct zero *zero, int64_t tensor, void *weights, int64_t bytes) {
  return comm_broadcast(zero_axis(zero, tensor), weights, bytes, zero->owner[tensor]);
}
