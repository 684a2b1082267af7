/* np: 1 2 3 4 */
#include <string.h>

#include "sharding/zero.h"
#include "tests/common/parallel.h"

enum { TENSORS = 9, COUNT_MAX = 400 };

static const int64_t sizes[TENSORS] = {400, 10, 10, 300, 1, 250, 90, 90, 40};

struct toy {
  struct grid grid;
  struct zero zero;
  struct arena arena;
};

static void open_toy(struct parallel_test *test, struct toy *toy, int64_t group) {
  struct zero_tensor tensors[TENSORS];
  const struct grid_options options = {.group_size = group, .micro_shards = test->world->size};
  for (int i = 0; i < TENSORS; i++)
    tensors[i] = (struct zero_tensor){.cost = (double)sizes[i], .sliced = i == 3 || i == 6};
  parallel_ok(test, grid_init(&toy->grid, test->world, &options));
  arena_measure(&toy->arena, "test");
  parallel_ok(test, zero_init(&toy->zero, &toy->grid, tensors, TENSORS, &toy->arena));
  parallel_ok(test, arena_init(&toy->arena, "test", toy->arena.peak));
  parallel_ok(test, zero_init(&toy->zero, &toy->grid, tensors, TENSORS, &toy->arena));
}

static void close_toy(struct toy *toy) {
  arena_free(&toy->arena);
  grid_free(&toy->grid);
}

/* A plain optimizer: momentum, then a step. `part` tells the rows of the members of a group apart.
 */
static void update(float *weights, float *momentum, int64_t tensor, int step, int part) {
  for (int64_t i = 0; i < sizes[tensor]; i++) {
    const float gradient = (float)((i * 7 + step * 3 + tensor + part) % 23) / 7.0f;
    momentum[i] = 0.9f * momentum[i] + gradient;
    weights[i] -= 0.01f * momentum[i];
  }
}

static void owners_step_equals_plain_step(struct parallel_test *test) {
  for (int64_t group = 1; group <= test->world->size; group++) {
    if (test->world->size % group) continue;
    static float plain[TENSORS][COUNT_MAX], weights[TENSORS][COUNT_MAX];
    static float plain_momentum[TENSORS][COUNT_MAX], momentum[TENSORS][COUNT_MAX];
    struct toy toy = {0};
    open_toy(test, &toy, group);
    memset(plain, 0, sizeof plain);
    memset(weights, 0, sizeof weights);
    memset(plain_momentum, 0, sizeof plain_momentum);
    memset(momentum, 0, sizeof momentum);
    for (int step = 0; step < 3; step++) {
      for (int t = 0; t < TENSORS; t++) {
        const int part = toy.zero.sliced[t] ? toy.grid.group.rank : 0;
        update(plain[t], plain_momentum[t], t, step, part);
        if (zero_owns(&toy.zero, t)) update(weights[t], momentum[t], t, step, part);
      }
      for (int t = 0; t < TENSORS; t++)
        parallel_ok(test, zero_share(&toy.zero, t, weights[t], sizes[t] * (int64_t)sizeof(float)));
      parallel_expect(test, memcmp(plain, weights, sizeof plain) == 0);
    }
    close_toy(&toy);
  }
}

static void every_tensor_has_one_owner(struct parallel_test *test) {
  struct toy toy = {0};
  open_toy(test, &toy, test->world->size);
  for (int t = 0; t < TENSORS; t++) {
    int64_t owners = zero_owns(&toy.zero, t);
    parallel_ok(test, comm_allreduce(zero_axis(&toy.zero, t), &owners, 1, DTYPE_I64, COMM_SUM));
    parallel_expect(test, owners == 1);
  }
  close_toy(&toy);
}

static void loads_are_level(struct parallel_test *test) {
  struct zero_cost items[6] = {{5, 0}, {4, 1}, {3, 2}, {3, 3}, {3, 4}, {6, 5}};
  const int wanted[6] = {1, 1, 0, 0, 1, 0};
  int owner[6];
  double loads[2] = {0, 0};
  zero_assign(owner, items, 6, loads, 2);
  for (int i = 0; i < 6; i++) parallel_expect(test, owner[i] == wanted[i]);
  parallel_expect(test, loads[0] == 12 && loads[1] == 12);
}

/* A sliced table owned by one rank leaves the replicated tensors to the others. */
static void replicated_tensors_make_up_for_sliced_ones(struct parallel_test *test) {
  struct toy toy = {0};
  open_toy(test, &toy, 1);
  double load = 0;
  for (int t = 0; t < TENSORS; t++)
    if (zero_owns(&toy.zero, t)) load += (double)sizes[t];
  parallel_expect(test, load <= 1191.0 / test->world->size * 1.4);
  close_toy(&toy);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"ZeRO step equals plain step, every group size", owners_step_equals_plain_step},
      {"every tensor has one owner", every_tensor_has_one_owner},
      {"owners have level loads", loads_are_level},
      {"replicated tensors make up for sliced ones", replicated_tensors_make_up_for_sliced_ones},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
