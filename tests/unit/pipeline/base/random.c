/* Random numbers: pure functions of their arguments (R-ORD-5), with the right distribution. */
#include "tests/common/tap.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "pipeline/base/random_blocks.h"

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

/* random_bits is Random123's. */
static void filled_bits_are_those_of_single_draws(void **state) {
  (void)state;
  const struct random_stream stream = random_open(9, "noise", 1ull << 40, 77);
  uint32_t bits[1000];
  random_fill_bits(bits, 1000, stream, 4294967291u);
  for (uint64_t i = 0; i < 1000; i++)
    assert_int_equal(bits[i], random_bits(stream, 4294967291u + i));
}

/* A pair of words as normals, in double; the float of a uniform is what is drawn from. */
static void pair_of_normals(double pair[2], const uint32_t words[2]) {
  const float u = ((float)(words[0] >> 8) + 0.5f) * 0x1p-24f;
  const double radius = sqrt(-2 * log((double)u));
  const double angle = 2 * acos(-1) * (double)(words[1] >> 8) * 0x1p-24;
  pair[0] = radius * cos(angle);
  pair[1] = radius * sin(angle);
}

static void normals_are_those_of_box_and_muller(void **state) {
  (void)state;
  const struct random_stream stream = random_open(4, "noise", 2, 0);
  static float values[DRAWS];
  static uint32_t bits[DRAWS];
  random_fill_normal(values, DRAWS, stream, 0);
  random_fill_bits(bits, DRAWS, stream, 0);
  double worst = 0;
  for (int i = 0; i < DRAWS; i += 2) {
    double pair[2];
    pair_of_normals(pair, bits + i);
    for (int k = 0; k < 2; k++) worst = fmax(worst, fabs((double)values[i + k] - pair[k]));
  }
  print_message("# largest difference from double: %.3g\n", worst);
  assert_true(worst < 1.5e-6);
}

static void compare_kernel(const struct random_kernel *kernel) {
  const struct random_stream stream = random_open(5, "noise", 3, 1);
  uint32_t bits[RANDOM_CHUNK], expected_bits[RANDOM_CHUNK];
  float values[RANDOM_CHUNK], expected[RANDOM_CHUNK];
  for (int blocks = 1; blocks <= RANDOM_BLOCKS; blocks += 9)
    for (uint64_t first = 0; first < 100 * RANDOM_BLOCKS; first += RANDOM_BLOCKS) {
      random_kernel_plain.bits(expected_bits, blocks, stream, first);
      random_kernel_plain.normals(expected, blocks, stream, first);
      kernel->bits(bits, blocks, stream, first);
      kernel->normals(values, blocks, stream, first);
      assert_memory_equal(bits, expected_bits, (size_t)blocks * RANDOM_WORDS * sizeof *bits);
      assert_memory_equal(values, expected, (size_t)blocks * RANDOM_WORDS * sizeof *values);
    }
}

static void every_instruction_set_draws_the_same(void **state) {
  (void)state;
  if (random_kernel_pick() == &random_kernel_plain) skip();
  compare_kernel(&random_kernel_avx2);
  if (random_kernel_pick() == &random_kernel_avx512) compare_kernel(&random_kernel_avx512);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(draws_depend_on_arguments_only),
      cmocka_unit_test(filling_in_pieces_gives_the_same_values),
      cmocka_unit_test(normals_have_the_moments_of_normals),
      cmocka_unit_test(uniforms_never_reach_the_ends),
      cmocka_unit_test(generator_gives_known_answers),
      cmocka_unit_test(filled_bits_are_those_of_single_draws),
      cmocka_unit_test(normals_are_those_of_box_and_muller),
      cmocka_unit_test(every_instruction_set_draws_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
