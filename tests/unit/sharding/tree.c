#include "sharding/tree.h"

#include <string.h>

#include "sharding/split.h"
#include "tests/common/tap.h"

enum { LEAVES_MAX = 70, WIDTH = 3 };

/* Values whose sum depends on the order of adding. */
static float value(int64_t leaf, int64_t i) {
  return (float)(1 + leaf % 7) / (float)(3 + (leaf * 13 + i * 5) % 11) * (leaf % 3 ? 1.0f : 1e4f);
}

static void stack_sum(float *sum, int64_t first, int64_t leaves) {
  float levels[8 * WIDTH];
  const struct tree_floats tree = {levels, WIDTH, leaves};
  assert_in_range(tree_depth(leaves), 1, 8);
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) levels[i] = 1e30f; /* not cleared */
  for (int64_t leaf = 0; leaf < leaves; leaf++) {
    float values[WIDTH];
    for (int64_t i = 0; i < WIDTH; i++) values[i] = value(first + leaf, i);
    tree_add_floats(&tree, leaf, 0, 1, values);
    tree_add_floats(&tree, leaf, 1, WIDTH - 1, values + 1);
  }
  memcpy(sum, levels, WIDTH * sizeof *sum);
}

static void stack_equals_recursion(void **state) {
  (void)state;
  for (int64_t leaves = 1; leaves <= LEAVES_MAX; leaves++) {
    float sum[WIDTH];
    float all[LEAVES_MAX * WIDTH];
    for (int64_t leaf = 0; leaf < leaves; leaf++)
      for (int64_t i = 0; i < WIDTH; i++) all[leaf * WIDTH + i] = value(leaf, i);
    stack_sum(sum, 0, leaves);
    for (int64_t i = 0; i < WIDTH; i++)
      assert_true(sum[i] == tree_sum_floats(all + i, WIDTH, leaves));
  }
}

static void depth_is_log2(void **state) {
  (void)state;
  assert_int_equal(tree_depth(1), 1);
  assert_int_equal(tree_depth(2), 1);
  assert_int_equal(tree_depth(4), 2);
  assert_int_equal(tree_depth(64), 6);
}

/* The tree over n leaves is the tree over ranks of the trees over each rank's leaves. */
static void ranks_hold_subtrees(void **state) {
  (void)state;
  for (int64_t leaves = 1; leaves <= 48; leaves++)
    for (int64_t ranks = 1; split_admissible(ranks, leaves); ranks *= 2) {
      float whole[WIDTH];
      float parts[64 * WIDTH];
      stack_sum(whole, 0, leaves);
      for (int64_t r = 0; r < ranks; r++)
        stack_sum(parts + r * WIDTH, r * (leaves / ranks), leaves / ranks);
      for (int64_t i = 0; i < WIDTH; i++)
        assert_true(whole[i] == tree_sum_floats(parts + i, WIDTH, ranks));
    }
}

static void leaf_memory_is_where_the_leaf_goes(void **state) {
  (void)state;
  float levels[2 * WIDTH] = {0};
  const struct tree_floats tree = {levels, WIDTH, 4};
  assert_ptr_equal(tree_leaf_floats(&tree, 0), levels);
  assert_null(tree_leaf_floats(&tree, 1));
  assert_ptr_equal(tree_leaf_floats(&tree, 2), levels + WIDTH);
  assert_null(tree_leaf_floats(&tree, 3));
}

static void doubles_follow_the_same_tree(void **state) {
  (void)state;
  const double values[] = {1, 1e-17, 1e-17, 1e-17, 1e-17};
  assert_true(tree_sum_doubles(values, 1, 5) == ((1 + 1e-17) + 1e-17) + (1e-17 + 1e-17));
  assert_true(tree_sum_doubles(values, 1, 0) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stack_equals_recursion),
      cmocka_unit_test(depth_is_log2),
      cmocka_unit_test(ranks_hold_subtrees),
      cmocka_unit_test(leaf_memory_is_where_the_leaf_goes),
      cmocka_unit_test(doubles_follow_the_same_tree),
  };
  return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
