/* np: 1 2 3 4 */
#include <math.h>
#include <string.h>

#include "sharding/split.h"
#include "sharding/tree.h"
#include "sharding/window.h"
#include "tests/common/parallel.h"

enum { LEAVES = 8, COUNT = 3001 };

static float value(int64_t leaf, int64_t i) {
  return (float)((leaf * 37 + i * 11) % 101 - 50) / (float)(7 + (leaf + i) % 13) *
         (i % 3 ? 1.0f : 1e3f);
}

/* The sum over all leaves, on one rank. */
static void serial_sum(float *sum) {
  float leaves[LEAVES];
  for (int64_t i = 0; i < COUNT; i++) {
    for (int64_t leaf = 0; leaf < LEAVES; leaf++) leaves[leaf] = value(leaf, i);
    sum[i] = tree_sum_floats(leaves, 1, LEAVES);
  }
}

/* This rank's share of the leaves, added along its subtree. */
static void local_sum(float *sum, const struct comm *comm) {
  const struct split mine = split_even(LEAVES, comm->size, comm->rank);
  float leaves[LEAVES];
  for (int64_t i = 0; i < COUNT; i++) {
    for (int64_t leaf = mine.begin; leaf < mine.end; leaf++)
      leaves[leaf - mine.begin] = value(leaf, i);
    sum[i] = tree_sum_floats(leaves, 1, split_count(mine));
  }
}

static bool refused(struct parallel_test *test, enum status status) {
  if (split_power_of_two(test->world->size)) return false;
  parallel_expect(test, status == STATUS_MISMATCH);
  return true;
}

static void sum_has_the_same_bits_for_every_count(struct parallel_test *test) {
  const int64_t counts[] = {1, 5, 2048, 2049, COUNT};
  const int64_t blocks[] = {8, 1000, COMM_BLOCK_BYTES};
  static float expected[COUNT], values[COUNT];
  serial_sum(expected);
  for (size_t b = 0; b < 3; b++)
    for (size_t c = 0; c < 5; c++) {
      struct comm comm;
      parallel_ok(test, comm_split(&comm, test->world, 0));
      comm.block_bytes = blocks[b];
      local_sum(values, &comm);
      const enum status status = comm_tree_sum(&comm, values, counts[c], DTYPE_F32);
      if (!refused(test, status)) {
        parallel_ok(test, status);
        parallel_expect(test, memcmp(values, expected, (size_t)counts[c] * sizeof *values) == 0);
      }
      parallel_expect(test, comm.traffic.largest_count <= blocks[b]);
      comm_free(&comm);
    }
}

/* bf16 is rounded at every node: by messages and through a window. */
static void bf16_has_the_same_bits_for_every_count(struct parallel_test *test) {
  static uint16_t expected[COUNT], values[COUNT];
  static float leaf[COUNT];
  static uint16_t levels[4 * COUNT];
  for (int64_t l = 0; l < LEAVES; l++) {
    for (int64_t i = 0; i < COUNT; i++) leaf[i] = value(l, i);
    tree_add_bf16(&(struct tree_bf16){levels, COUNT, LEAVES}, l, 0, COUNT, leaf);
  }
  memcpy(expected, levels, sizeof expected);
  for (int ranks = 0; ranks < 2 && split_power_of_two(test->world->size); ranks++) {
    struct comm comm;
    parallel_ok(test, comm_split(&comm, test->world, 0));
    if (ranks) parallel_ok(test, window_open(&comm, 0));
    const struct split mine = split_even(LEAVES, comm.size, comm.rank);
    for (int64_t l = mine.begin; l < mine.end; l++) {
      for (int64_t i = 0; i < COUNT; i++) leaf[i] = value(l, i);
      tree_add_bf16(&(struct tree_bf16){levels, COUNT, split_count(mine)}, l - mine.begin, 0, COUNT,
                    leaf);
    }
    memcpy(values, levels, sizeof values);
    parallel_ok(test, comm_tree_sum(&comm, values, COUNT, DTYPE_BF16));
    parallel_expect(test, memcmp(values, expected, sizeof values) == 0);
    comm_free(&comm);
  }
}

/* Over nodes as they are, over nodes of one rank, where nothing is shared, and over nodes of two.
 * Counts that are not powers of two leave the order to MPI. */
static void windows_give_the_same_bits(struct parallel_test *test) {
  static float expected[COUNT], values[COUNT];
  serial_sum(expected);
  for (int ranks = 0; ranks <= 2; ranks++) {
    struct comm comm;
    parallel_ok(test, comm_split(&comm, test->world, 0));
    parallel_ok(test, window_open(&comm, ranks));
    parallel_expect(test, (comm.window != NULL) == (comm.size > 1));
    if (comm.window) parallel_expect(test, comm.window->shared == (comm.size != 3 && ranks != 1));
    for (int64_t count = 1; comm.window && count <= COUNT; count = count * 3 + 1) {
      local_sum(values, &comm);
      parallel_ok(test, window_sum(comm.window, values, count, DTYPE_F32));
      for (int64_t i = 0; i < count; i++)
        parallel_expect(test, comm.size == 3 ? fabsf(values[i] - expected[i]) < 1e-2f
                                             : values[i] == expected[i]);
    }
    comm_free(&comm);
  }
}

/* Many pieces go through the slots again and again. */
static void take_long_arrays(struct parallel_test *test, int ranks_per_node) {
  enum { LONG = 1000003 };
  static double values[LONG];
  struct comm comm;
  parallel_ok(test, comm_split(&comm, test->world, 0));
  parallel_ok(test, window_open(&comm, ranks_per_node));
  for (int round = 0; comm.window && round < 3; round++) {
    for (int64_t i = 0; i < LONG; i++) values[i] = (double)(i * (comm.rank + 1) + round);
    parallel_ok(test, window_sum(comm.window, values, LONG, DTYPE_F64));
    const int64_t ranks = comm.size * (comm.size + 1) / 2;
    int64_t wrong = 0;
    for (int64_t i = 0; i < LONG; i++)
      wrong += values[i] != (double)(i * ranks + round * comm.size);
    parallel_expect(test, wrong == 0);
  }
  comm_free(&comm);
}

static void windows_take_long_arrays(struct parallel_test *test) {
  for (int ranks = 0; ranks <= 2; ranks++) take_long_arrays(test, ranks);
}

/* Rank 0 queues arrays and goes on; the others come later. */
static void queue_without_waiting(struct parallel_test *test, int ranks_per_node) {
  enum { ARRAYS = 5 };
  static float values[ARRAYS][COUNT], expected[COUNT];
  struct comm comm;
  serial_sum(expected);
  parallel_ok(test, comm_split(&comm, test->world, 0));
  parallel_ok(test, window_open(&comm, ranks_per_node));
  for (int i = 0; i < ARRAYS; i++) local_sum(values[i], &comm);
  for (int turn = 0; comm.window && turn < 2; turn++) {
    for (int i = 0; (comm.rank == 0) == (turn == 0) && i < ARRAYS; i++) {
      parallel_ok(test, window_start(comm.window, values[i], COUNT - i, DTYPE_F32));
      parallel_ok(test, window_poll(comm.window));
      parallel_expect(test, comm.window->copy.range == 0 || comm.rank != 0);
    }
    parallel_ok(test, comm_barrier(&comm));
  }
  if (comm.window) parallel_ok(test, window_finish(comm.window));
  for (int i = 0; comm.window && i < ARRAYS; i++)
    for (int64_t j = 0; j < COUNT - i; j++)
      parallel_expect(test, fabsf(values[i][j] - expected[j]) <= (comm.size == 3 ? 1e-2f : 0));
  comm_free(&comm);
}

static void queued_sums_do_not_wait(struct parallel_test *test) {
  for (int ranks = 0; ranks <= 2; ranks++) queue_without_waiting(test, ranks);
}

static void scatter_equals_sum(struct parallel_test *test) {
  const int64_t all_borders[5][5] = {
      {0}, {0, COUNT}, {0, 3000, COUNT}, {0}, {0, 700, 700, 2999, COUNT}};
  const int64_t *borders = all_borders[test->world->size];
  static float expected[COUNT], values[COUNT], mine[COUNT];
  struct comm comm;
  serial_sum(expected);
  parallel_ok(test, comm_split(&comm, test->world, 0));
  comm.block_bytes = 1000;
  local_sum(values, &comm);
  const enum status status = comm_tree_scatter(&comm, mine, values, borders, DTYPE_F32);
  if (!refused(test, status)) {
    const struct split own = {borders[comm.rank], borders[comm.rank + 1]};
    parallel_ok(test, status);
    parallel_expect(
        test, memcmp(mine, expected + own.begin, (size_t)split_count(own) * sizeof *mine) == 0);
  }
  comm_free(&comm);
}

static void doubles_are_added_in_the_same_order(struct parallel_test *test) {
  static double values[5000];
  const int size = test->world->size;
  for (int i = 0; i < 5000; i++) values[i] = 1.0 / (1 + test->world->rank * 3 + i);
  const enum status status = comm_tree_sum(test->world, values, 5000, DTYPE_F64);
  if (refused(test, status)) return;
  parallel_ok(test, status);
  for (int i = 0; i < 5000; i++) {
    double leaves[4];
    for (int r = 0; r < size; r++) leaves[r] = 1.0 / (1 + r * 3 + i);
    parallel_expect(test, values[i] == tree_sum_doubles(leaves, 1, size));
  }
}

static void other_types_are_refused(struct parallel_test *test) {
  int64_t value_of_integer = 1;
  const enum status expected =
      split_power_of_two(test->world->size) ? STATUS_INTERNAL : STATUS_MISMATCH;
  parallel_expect(test, comm_tree_sum(test->world, &value_of_integer, 1, DTYPE_I64) == expected);
}

static void not_a_number_reaches_every_rank(struct parallel_test *test) {
  float values[3] = {1, test->world->rank == test->world->size - 1 ? NAN : 1.0f, INFINITY};
  const enum status status = comm_tree_sum(test->world, values, 3, DTYPE_F32);
  if (refused(test, status)) return;
  parallel_expect(test, isfinite(values[0]) && isnan(values[1]) && isinf(values[2]));
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-MPI-3 tree sum: same bits for 1, 2, 4 ranks and any block",
       sum_has_the_same_bits_for_every_count},
      {"R-MPI-3 tree sum through shared memory: same bits, one and two nodes",
       windows_give_the_same_bits},
      {"R-MPI-3 tree sum of bf16, rounded at every node: same bits, by messages and shared memory",
       bf16_has_the_same_bits_for_every_count},
      {"tree sum of long arrays through shared memory", windows_take_long_arrays},
      {"queued sums do not wait for slow ranks, same bits", queued_sums_do_not_wait},
      {"R-MPI-3 tree scatter equals tree sum, uneven parts", scatter_equals_sum},
      {"tree sum of doubles", doubles_are_added_in_the_same_order},
      {"tree sum refuses other types", other_types_are_refused},
      {"R-NUM-1 NaN and infinity reach every rank", not_a_number_reaches_every_rank},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
