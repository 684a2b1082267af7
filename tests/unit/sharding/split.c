#include <string.h>

#include "sharding/split.h"
#include "tests/common/tap.h"

static void parts_cover_all_items_in_order(void **state) {
  (void)state;
  for (int64_t items = 0; items < 40; items++)
    for (int64_t parts = 1; parts < 9; parts++) {
      int64_t next = 0;
      for (int64_t part = 0; part < parts; part++) {
        const struct split split = split_even(items, parts, part);
        assert_int_equal(split.begin, next);
        assert_in_range(split_count(split), items / parts, items / parts + 1);
        for (int64_t i = split.begin; i < split.end; i++)
          assert_int_equal(split_even_owner(items, parts, i), part);
        next = split.end;
      }
      assert_int_equal(next, items);
    }
}

static void block_borders_are_multiples(void **state) {
  (void)state;
  for (int64_t items = 1; items < 200; items += 7)
    for (int64_t parts = 1; parts < 6; parts++) {
      int64_t next = 0;
      for (int64_t part = 0; part < parts; part++) {
        const struct split split = split_blocks(items, 16, parts, part);
        assert_int_equal(split.begin, next);
        assert_true(split.end == items || split.end % 16 == 0);
        next = split.end;
      }
      assert_int_equal(next, items);
    }
}

static void counts_beyond_int32_are_exact(void **state) {
  (void)state;
  const int64_t items = INT64_C(5000000000) * 3 + 2;
  const struct split split = split_even(items, 3, 2);
  assert_int_equal(split.end, items);
  assert_int_equal(split_count(split), INT64_C(5000000000));
  assert_int_equal(split_even_owner(items, 3, split.begin), 2);
  assert_int_equal(split_even_owner(items, 3, split.begin - 1), 1);
}

static void owner_of_uneven_parts_skips_empty_ones(void **state) {
  (void)state;
  const int64_t borders[] = {0, 3, 3, 10, 11};
  const int64_t owners[] = {0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 3};
  for (int64_t i = 0; i < 11; i++) assert_int_equal(split_owner(borders, 4, i), owners[i]);
}

static void overlap_is_empty_or_common(void **state) {
  (void)state;
  const struct split a = split_overlap((struct split){0, 5}, (struct split){3, 9});
  assert_int_equal(a.begin, 3);
  assert_int_equal(a.end, 5);
  assert_int_equal(split_count(split_overlap((struct split){0, 2}, (struct split){5, 9})), 0);
}

static void refusal_lists_the_admissible_counts(void **state) {
  (void)state;
  assert_ok(split_check_admissible("micro_shards", 4, 12));
  assert_status(STATUS_MISMATCH, split_check_admissible("micro_shards", 3, 12));
  assert_non_null(strstr(error_message(), "micro_shards = 12"));
  assert_non_null(strstr(error_message(), "admits 1, 2, 4"));
  assert_status(STATUS_MISMATCH, split_check_admissible("micro_shards", 8, 12));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_cover_all_items_in_order),
      cmocka_unit_test(block_borders_are_multiples),
      cmocka_unit_test(counts_beyond_int32_are_exact),
      cmocka_unit_test(owner_of_uneven_parts_skips_empty_ones),
      cmocka_unit_test(overlap_is_empty_or_common),
      {"R-ELA-4 refusal lists the admissible counts", refusal_lists_the_admissible_counts, NULL,
       NULL, NULL},
  };
  return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
