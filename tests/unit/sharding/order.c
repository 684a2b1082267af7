/* The order of samples (R-ORD-1, R-ORD-4, R-ORD-6, R-DLM-13). */
#include "tests/common/tap.h"

#include <stdlib.h>
#include <string.h>

#include "sharding/order.h"

static void each_epoch_is_a_bijection(void **state) {
  (void)state;
  unsigned char seen[1001];
  for (int64_t rows = 1; rows <= 1000; rows++) {
    const struct order order = {.seed = 7, .rows = rows, .batch = 1};
    for (int64_t epoch = 0; epoch < 2; epoch++) {
      memset(seen, 0, sizeof seen);
      for (int64_t i = 0; i < rows; i++) {
        const int64_t row = order_permute(&order, epoch, i);
        assert_true(row >= 0 && row < rows && !seen[row]);
        seen[row] = 1;
      }
    }
  }
}

/* A sum and a sum of hashes tell a permutation of a million rows; far places are in range. */
static void large_data_is_covered(void **state) {
  (void)state;
  const int64_t rows = 1000003;
  const struct order order = {.seed = 1, .rows = rows, .batch = 64};
  unsigned char *seen = calloc((size_t)rows, 1);
  for (int64_t i = 0; i < rows; i++) seen[order_permute(&order, 3, i)]++;
  for (int64_t i = 0; i < rows; i++) assert_int_equal(seen[i], 1);
  free(seen);
  const struct order huge = {.seed = 1, .rows = 5000000000000, .batch = 1 << 20};
  for (int64_t i = 0; i < 1000; i++) {
    const int64_t row = order_at(&huge, 123456789 + i, i).row;
    assert_true(row >= 0 && row < huge.rows);
  }
}

/* Any number of ranks, each taking its part of every batch: every row once in each epoch. */
static void ranks_share_an_epoch(void **state) {
  (void)state;
  enum { ROWS = 101, BATCH = 12, EPOCHS = 3 };
  const struct order order = {.seed = 5, .rows = ROWS, .batch = BATCH};
  for (int64_t ranks = 1; ranks <= 4; ranks++) {
    int seen[EPOCHS + 1][ROWS] = {0};
    const int64_t steps = EPOCHS * ROWS / BATCH + 1, share = BATCH / ranks;
    for (int64_t step = 0; step < steps; step++) {
      uint64_t hash = 0;
      for (int64_t rank = 0; rank < ranks; rank++)
        for (int64_t slot = rank * share; slot < (rank + 1) * share; slot++) {
          const struct order_sample sample = order_at(&order, step, slot);
          hash += order_sample_hash(sample);
          assert_int_equal(sample.index, step * BATCH + slot);
          seen[sample.epoch][sample.row]++;
        }
      assert_true(hash == order_step_hash(&order, step));
    }
    for (int epoch = 0; epoch < EPOCHS; epoch++)
      for (int row = 0; row < ROWS; row++) assert_int_equal(seen[epoch][row], 1);
  }
}

static void order_changes_with_epoch_and_seed(void **state) {
  (void)state;
  const struct order a = {.seed = 5, .rows = 1000, .batch = 10}, b = {6, 1000, 10, false, false};
  int same_epoch = 0, same_seed = 0, in_place = 0, neighbours = 0;
  for (int64_t i = 0; i < 1000; i++) {
    const int64_t row = order_permute(&a, 0, i);
    same_epoch += row == order_permute(&a, 1, i);
    same_seed += row == order_permute(&b, 0, i);
    in_place += row == i;
    if (i) neighbours += row == order_permute(&a, 0, i - 1) + 1;
  }
  assert_true(same_epoch < 10 && same_seed < 10 && in_place < 10 && neighbours < 10);
}

/* Mean position of the rows of each tenth: a shuffle that only stirs locally fails. */
static void order_is_spread(void **state) {
  (void)state;
  enum { ROWS = 100000 };
  const struct order order = {.seed = 5, .rows = ROWS, .batch = 10};
  double sums[10] = {0};
  for (int64_t i = 0; i < ROWS; i++) sums[10 * i / ROWS] += (double)order_permute(&order, 0, i);
  for (int i = 0; i < 10; i++) {
    const double mean = sums[i] / (ROWS / 10);
    assert_true(mean > ROWS / 2 - 1500 && mean < ROWS / 2 + 1500); /* 5 standard errors */
  }
}

static void a_single_pass_ends(void **state) {
  (void)state;
  const struct order order = {.rows = 10, .batch = 4, .sequential = true, .single_pass = true};
  assert_int_equal(order_steps(&order), 3);
  assert_int_equal(order_at(&order, 2, 1).row, 9);
  assert_int_equal(order_at(&order, 2, 2).row, -1);
  assert_true(order_step_hash(&order, 3) == 0);
}

static void the_fingerprint_covers_what_decides(void **state) {
  (void)state;
  const struct order_fingerprint parts = {"abc", "def", 128}, other = {"abd", "def", 128};
  struct order order = {.seed = 5, .rows = 1000, .batch = 10};
  char a[HASH_HEX_BYTES], b[HASH_HEX_BYTES];
  order_fingerprint(a, &order, &parts);
  order_fingerprint(b, &order, &parts);
  assert_string_equal(a, b);
  order_fingerprint(b, &order, &other);
  assert_string_not_equal(a, b);
  order.batch = 20;
  order_fingerprint(b, &order, &parts);
  assert_string_not_equal(a, b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_epoch_is_a_bijection),
      cmocka_unit_test(large_data_is_covered),
      cmocka_unit_test(ranks_share_an_epoch),
      cmocka_unit_test(order_changes_with_epoch_and_seed),
      cmocka_unit_test(order_is_spread),
      cmocka_unit_test(a_single_pass_ends),
      cmocka_unit_test(the_fingerprint_covers_what_decides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
