/* Random numbers: pure functions of their arguments (R-ORD-5), with the right distribution. */
#include "tests/common/tap.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/random.h"

enum { DRAWS = 200000 };

static void draws_depend_on_arguments_only(void **state) {
  (void)state;
  const struct random_stream a = random_open(7, "noise", 3, 5);
  const struct random_stream b = random_open(7, "noise", 3, 5);
  for (uint64_t i = 100; i-- > 0;) assert_int_equal(random_bits(a, i), random_bits(b, i));
  assert_int_not_equal(random_bits(a, 0), random_bits(random_open(7, "time", 3, 5), 0));
  assert_int_not_equal(random_bits(a, 0), random_bits(random_open(8, "noise", 3, 5), 0));
  assert_int_not_equal(random_bits(a, 0), random_bits(random_open(7, "noise", 4, 5), 0));
  assert_int_not_equal(random_bits(a, 0), random_bits(random_open(7, "noise", 3, 6), 0));
  assert_int_not_equal(random_bits(a, 0),
                       random_bits(random_open(7, "noise", 3 + (1ull << 32), 5), 0));
}

static void filling_in_pieces_gives_the_same_values(void **state) {
  (void)state;
  const struct random_stream stream = random_open(1, "noise", 0, 0);
  enum { COUNT = 10003 }; /* more than one thread fills at a time */
  static float whole[COUNT], pieces[COUNT];
  random_fill_normal(whole, COUNT, stream, 3);
  for (int at = 0, size = 1; at < COUNT; at += size, size = size % 7 + 1)
    random_fill_normal(pieces + at, at + size > COUNT ? COUNT - at : size, stream,
                       3 + (uint64_t)at);
  assert_memory_equal(whole, pieces, sizeof whole);
}

static void normals_have_the_moments_of_normals(void **state) {
  (void)state;
  static float values[DRAWS];
  double sum = 0, squares = 0, fourth = 0;
  random_fill_normal(values, DRAWS, random_open(2, "noise", 0, 0), 0);
  for (int i = 0; i < DRAWS; i++) {
    const double v = (double)values[i];
    sum += v, squares += v * v, fourth += v * v * v * v;
  }
  assert_true(fabs(sum / DRAWS) < 0.012);
  assert_true(fabs(squares / DRAWS - 1) < 0.016);
  assert_true(fabs(fourth / DRAWS - 3) < 0.12);
}

static void uniforms_never_reach_the_ends(void **state) {
  (void)state;
  const struct random_stream stream = random_open(3, "time", 0, 0);
  double sum = 0;
  for (uint64_t i = 0; i < DRAWS; i++) {
    const double u = random_uniform(stream, i);
    assert_true(u > 0 && u < 1);
    sum += u;
  }
  assert_true(fabs(sum / DRAWS - 0.5) < 0.004);
}

/* Known answers of Philox4x32-10 (Random123's kat_vectors: zero counter and key). */
static void generator_gives_known_answers(void **state) {
  (void)state;
  const struct random_stream zero = {0};
  const uint32_t expected[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (uint64_t i = 0; i < 4; i++) assert_int_equal(random_bits(zero, i), expected[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_depend_on_arguments_only),
      cmocka_unit_test(filling_in_pieces_gives_the_same_values),
      cmocka_unit_test(normals_have_the_moments_of_normals),
      cmocka_unit_test(uniforms_never_reach_the_ends),
      cmocka_unit_test(generator_gives_known_answers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
