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
  const struct order a = {.seed = 5, .rows = 1000, .batch = 10},
                     b = {.seed = 6, .rows = 1000, .batch = 10};
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

/* Three corpora of 70, 500 and 31 rows; one has no share. */
static struct order mixed_order(void) {
  static const double weights[] = {2, 1, 0, 0.1};
  static const int64_t rows[] = {70, 500, 40, 31};
  struct order order = {.seed = 9, .rows = 641, .batch = 24};
  assert_ok(order_mix_make(&order.mix, weights, rows, 4));
  return order;
}

static int64_t corpus_of(const struct order *order, int64_t row) {
  int64_t corpus = 0;
  while (row >= order->mix.first[corpus + 1]) corpus++;
  return corpus;
}

/* 2 : 1 : 0 : 0.1 is 645.16 : 322.58 : 0 : 32.26 of a thousand. */
static void mixes_have_exact_proportions(void **state) {
  (void)state;
  const struct order order = mixed_order();
  const int64_t shares[] = {645, 323, 0, 32};
  for (int64_t block = 0; block < 7; block++) {
    int64_t seen[4] = {0}, early[4] = {0};
    for (int64_t i = 0; i < ORDER_BLOCK; i++) {
      const int64_t index = block * ORDER_BLOCK + i;
      const struct order_sample sample = order_at(&order, index / order.batch, index % order.batch);
      assert_int_equal(sample.index, index);
      seen[corpus_of(&order, sample.row)]++;
      if (i < 200) early[corpus_of(&order, sample.row)]++;
    }
    for (int i = 0; i < 4; i++) assert_int_equal(seen[i], shares[i]);
    assert_in_range(early[0], 90, 170); /* and they are spread within the block */
  }
}

/* Each corpus gives each of its rows once in each of its epochs, in another order. */
static void mixed_corpora_have_epochs_of_their_own(void **state) {
  (void)state;
  enum { SAMPLES = 20 * ORDER_BLOCK };
  const struct order order = mixed_order();
  static int seen[641][200];
  for (int64_t i = 0; i < SAMPLES; i++) {
    const struct order_sample sample = order_at(&order, i / order.batch, i % order.batch);
    if (sample.epoch < 200) seen[sample.row][sample.epoch]++;
  }
  for (int64_t row = 0; row < 641; row++) {
    const int64_t corpus = corpus_of(&order, row);
    const int64_t rows = order.mix.first[corpus + 1] - order.mix.first[corpus];
    const int64_t epochs = 20 * order.mix.shares[corpus] / rows; /* whole ones */
    for (int64_t epoch = 0; epoch < epochs && epoch < 200; epoch++)
      assert_int_equal(seen[row][epoch], 1);
  }
}

/* A far step is found at once, and a batch of another size walks the same samples. */
static void mixes_are_sought_in_place(void **state) {
  (void)state;
  struct order order = mixed_order(), other = order;
  other.batch = 8;
  for (int64_t step = 4000000000000; step < 4000000000100; step++) {
    const struct order_sample a = order_at(&order, step, 17);
    const struct order_sample b = order_at(&other, 3 * step + 2, 1);
    assert_true(a.index == b.index && a.row == b.row && a.epoch == b.epoch);
  }
}

static void bad_mixes_are_refused(void **state) {
  (void)state;
  struct order_mix mix;
  const int64_t rows[] = {5, 0};
  assert_status(STATUS_MISMATCH, order_mix_make(&mix, (const double[]){0, 0}, rows, 2));
  assert_status(STATUS_MISMATCH, order_mix_make(&mix, (const double[]){1, 1}, rows, 2));
  assert_status(STATUS_MISMATCH, order_mix_make(&mix, (const double[]){1e-5, 1}, rows, 2));
  assert_ok(order_mix_make(&mix, (const double[]){1, 0}, rows, 2));
  assert_int_equal(mix.shares[0], ORDER_BLOCK);
}

static void the_fingerprint_covers_the_mix(void **state) {
  (void)state;
  const struct order_fingerprint parts = {"abc", "def", 128};
  struct order order = mixed_order();
  char a[HASH_HEX_BYTES], b[HASH_HEX_BYTES];
  order_fingerprint(a, &order, &parts);
  order.mix.shares[0]--;
  order.mix.shares[1]++;
  order_fingerprint(b, &order, &parts);
  assert_string_not_equal(a, b);
  order.mix.count = 0;
  order_fingerprint(a, &order, &parts);
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
      cmocka_unit_test(mixes_have_exact_proportions),
      cmocka_unit_test(mixed_corpora_have_epochs_of_their_own),
      cmocka_unit_test(mixes_are_sought_in_place),
      cmocka_unit_test(bad_mixes_are_refused),
      cmocka_unit_test(the_fingerprint_covers_the_mix),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
