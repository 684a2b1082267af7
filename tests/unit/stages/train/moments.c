/* Moments in bf16: rounding at random is right in the mean, and small updates count. */
#include <math.h>

#include "pipeline/base/bf16.h"
#include "pipeline/base/random.h"
#include "stages/train/moments.h"
#include "tests/common/tap.h"

enum { DRAWS = 4096 };

static void the_mean_is_kept(void **state) {
  (void)state;
  static uint32_t bits[DRAWS];
  const float values[] = {1.001f, -3.14159f, 1e-20f, 0};
  random_fill_bits(bits, DRAWS, random_open(1, "test", 0, 0), 0);
  for (int v = 0; v < 4; v++)
    for (int shift = 0; shift <= 16; shift += 16) {
      double sum = 0;
      for (int i = 0; i < DRAWS; i++) {
        bf16 moment;
        float back;
        moments_store(&moment, true, values + v, 0, 1, bits + i, shift);
        moments_load(&back, &moment, true, 0, 1);
        assert_true(fabsf(back - values[v]) <= 0x1p-7f * fabsf(values[v]));
        sum += (double)back;
      }
      const double spread = 0x1p-7 * fabs((double)values[v]); /* of one draw, at most */
      assert_near(sum / DRAWS, (double)values[v], 5 * spread / sqrt(DRAWS));
    }
}

/* v = 0.999 v + 0.001 g^2 moves by less than half of bf16's last place: rounding to nearest would
 * never arrive. */
static void small_updates_count(void **state) {
  (void)state;
  double sum = 0;
  for (uint64_t element = 0; element < 64; element++) {
    bf16 moment = bf16_from_float(1);
    for (uint32_t step = 0; step < 4000; step++) {
      uint32_t bits;
      float v;
      random_fill_bits(&bits, 1, random_open(1, "test", 0, step), element);
      moments_load(&v, &moment, true, 0, 1);
      v = 0.999f * v + 0.001f * 0.5f;
      moments_store(&moment, true, &v, 0, 1, &bits, 0);
    }
    sum += (double)bf16_to_float(moment);
  }
  assert_near(sum / 64, 0.5 + 0.5 * pow(0.999, 4000), 0.01);
}

static void what_is_not_finite_stays_so(void **state) {
  (void)state;
  const float values[2] = {INFINITY, NAN};
  const uint32_t bits[2] = {0xffffffffu, 0xffffffffu};
  bf16 moments[2];
  float back[2];
  moments_store(moments, true, values, 0, 2, bits, 0);
  moments_load(back, moments, true, 0, 2);
  assert_true(isinf(back[0]) && back[0] > 0);
  assert_true(isnan(back[1]));
}

static void draws_are_those_of_single_calls(void **state) {
  (void)state;
  const struct random_stream stream = random_open(9, "bits", 3, 4);
  for (uint64_t first = 0; first < 9; first++) {
    uint32_t bits[11];
    random_fill_bits(bits, 11, stream, first);
    for (uint64_t i = 0; i < 11; i++) assert_int_equal(bits[i], random_bits(stream, first + i));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_mean_is_kept),
      cmocka_unit_test(small_updates_count),
      cmocka_unit_test(what_is_not_finite_stays_so),
      cmocka_unit_test(draws_are_those_of_single_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
