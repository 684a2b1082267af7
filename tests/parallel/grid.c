/* np: 1 2 3 4 */
#include <string.h>

#include "sharding/grid.h"
#include "sharding/tree.h"
#include "tests/common/parallel.h"

static void groups_are_consecutive(struct parallel_test *test) {
  for (int64_t group = 1; group <= test->world->size; group++) {
    if (test->world->size % group) continue;
    struct grid grid;
    const struct grid_options options = {.group_size = group, .micro_shards = 12};
    parallel_ok(test, grid_init(&grid, test->world, &options));
    parallel_expect(test, grid.group.size == group);
    parallel_expect(test, grid.across.size == test->world->size / group);
    parallel_expect(test, grid.across.rank * group + grid.group.rank == test->world->rank);
    parallel_expect(test, grid_micro_steps(&grid) == 12 / test->world->size);
    parallel_expect(test, grid.shards.begin == test->world->rank * grid_micro_steps(&grid));
    grid_free(&grid);
  }
}

static bool refused_with(const struct grid_options *options, int64_t ranks, const char *words) {
  return grid_check(ranks, options) == STATUS_MISMATCH && strstr(error_message(), words) != NULL;
}

static void impossible_layouts_are_refused(struct parallel_test *test) {
  const struct grid_options canonical = {.micro_shards = 12, .canonical = true};
  const struct grid_options fast = {.micro_shards = 12};
  const struct grid_options groups = {.group_size = 3, .micro_shards = 16};
  const struct grid_options slices = {
      .group_size = 4, .micro_shards = 16, .slices = 6, .canonical = true};
  parallel_expect(test, refused_with(&canonical, 3, "admits 1, 2, 4"));
  parallel_expect(test, refused_with(&canonical, 8, "admits 1, 2, 4"));
  parallel_expect(test, refused_with(&fast, 5, "choose one of 1, 2, 3, 4, 6, 12"));
  parallel_expect(test, refused_with(&groups, 8, "choose one of 1, 2, 4, 8"));
  parallel_expect(test, refused_with(&slices, 8, "slices = 6"));
  parallel_ok(test, grid_check(4, &canonical));
  parallel_ok(test, grid_check(3, &fast));
}

static double value(int64_t shard, int64_t i) {
  return (double)(shard + 1) / (double)(3 + (shard * 5 + i) % 7);
}

static void scalars_have_the_same_bits(struct parallel_test *test) {
  struct grid grid;
  double mine[12 * 2], all[12 * 2], totals[2];
  const struct grid_options options = {.micro_shards = 12};
  parallel_ok(test, grid_init(&grid, test->world, &options));
  for (int64_t j = 0; j < grid_micro_steps(&grid); j++)
    for (int64_t i = 0; i < 2; i++) mine[j * 2 + i] = value(grid.shards.begin + j, i);
  for (int64_t shard = 0; shard < 12; shard++)
    for (int64_t i = 0; i < 2; i++) all[shard * 2 + i] = value(shard, i);
  parallel_ok(test, grid_sum_scalars(&grid, totals, mine, 2));
  parallel_expect(test, totals[0] == tree_sum_doubles(all, 2, 12));
  parallel_expect(test, totals[1] == tree_sum_doubles(all + 1, 2, 12));
  grid_free(&grid);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"consecutive ranks form vocabulary groups", groups_are_consecutive},
      {"R-ELA-4 impossible layouts are refused with what is admissible",
       impossible_layouts_are_refused},
      {"R-DLM-2 sums of scalars: same bits for 1, 2, 3, 4 ranks", scalars_have_the_same_bits},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
