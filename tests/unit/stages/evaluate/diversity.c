/* Entropy and distinct-n on cases small enough to do by hand (R-EVA-3). */
#include "tests/common/tap.h"

#include <math.h>

#include "stages/evaluate/diversity.h"

static const int32_t fours[] = {4, 4}, eight = 8;

static void entropy_is_of_each_row(void **state) {
  (void)state;
  const int32_t tokens[] = {5, 5, 5, 5, 1, 2, 1, 2};
  double entropy;
  assert_ok(diversity_entropy(&entropy, (struct diversity_rows){tokens, fours, 2, 4}));
  assert_true(fabs(entropy - 0.5 * log(2)) < 1e-12);
  assert_ok(diversity_entropy(&entropy, (struct diversity_rows){tokens, &eight, 1, 8}));
  assert_true(fabs(entropy - (0.5 * log(2) + 2 * 0.25 * log(4))) < 1e-12);
}

static void distinct_counts_ngrams_within_rows(void **state) {
  (void)state;
  const int32_t tokens[] = {1, 2, 1, 2, 2, 1, 2, 1};
  double distinct;
  assert_ok(diversity_distinct(&distinct, (struct diversity_rows){tokens, fours, 2, 4}, 1));
  assert_true(fabs(distinct - 2.0 / 8) < 1e-12);
  /* 12 21 12 | 21 12 21: two different ones of six; "22" would cross the rows */
  assert_ok(diversity_distinct(&distinct, (struct diversity_rows){tokens, fours, 2, 4}, 2));
  assert_true(fabs(distinct - 2.0 / 6) < 1e-12);
  assert_ok(diversity_distinct(&distinct, (struct diversity_rows){tokens, fours, 2, 4}, 5));
  assert_true(distinct == 0);
}

static void padding_does_not_count(void **state) {
  (void)state;
  const int32_t tokens[] = {1, 2, 0, 0, 3, 0, 0, 0}, lengths[] = {2, 1};
  const struct diversity_rows rows = {tokens, lengths, 2, 4};
  double value;
  assert_ok(diversity_entropy(&value, rows));
  assert_true(fabs(value - 0.5 * log(2)) < 1e-12);
  assert_ok(diversity_distinct(&value, rows, 1));
  assert_true(value == 1); /* 1, 2, 3 */
  assert_ok(diversity_distinct(&value, rows, 2));
  assert_true(value == 1); /* 12 */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(entropy_is_of_each_row),
                                     cmocka_unit_test(distinct_counts_ngrams_within_rows),
                                     cmocka_unit_test(padding_does_not_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
