/* R-NUM-4: which hosts are named when numbers that were not finite are, computed again. */
#include "tests/common/tap.h"

#include <string.h>

#include "stages/train/train_again.h"

static void ranks_that_differ_are_named(void **state) {
  (void)state;
  char out[TRAIN_AGAIN_BYTES];
  const struct train_again_rank ranks[] = {
      {"n1", false}, {"n1", true}, {"n2", false}, {"n2", true}};
  train_again_name(out, ranks, 4);
  assert_string_equal(out, "rank 1 on host n1, rank 3 on host n2");
}

static void without_one_all_hosts_are(void **state) {
  (void)state;
  char out[TRAIN_AGAIN_BYTES];
  const struct train_again_rank ranks[] = {{"n1", false}, {"n1", false}, {"n2", false}};
  train_again_name(out, ranks, 2);
  assert_string_equal(out, "host n1");
  train_again_name(out, ranks, 3);
  assert_string_equal(out, "a host of this job, from n1 on");
}

static void long_lists_are_cut(void **state) {
  (void)state;
  char out[TRAIN_AGAIN_BYTES];
  struct train_again_rank ranks[40];
  for (int r = 0; r < 40; r++) ranks[r] = (struct train_again_rank){"a-host", true};
  train_again_name(out, ranks, 40);
  assert_int_equal(strlen(out), TRAIN_AGAIN_BYTES - 1);
  assert_memory_equal(out, "rank 0 on host a-host, rank 1", 29);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_that_differ_are_named),
      cmocka_unit_test(without_one_all_hosts_are),
      cmocka_unit_test(long_lists_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
