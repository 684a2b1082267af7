/* Master weights lose nothing, and their working copies are rounded to nearest. */
#include <math.h>
#include <string.h>

#include "pipeline/base/bf16.h"
#include "pipeline/base/random.h"
#include "stages/train/master.h"
#include "tests/common/tap.h"

enum { COUNT = 4096 };

static void fill(float *values) {
  const struct random_stream stream = random_open(1, "master", 0, 0);
  random_fill_normal(values, COUNT, stream, 0);
  for (int i = 0; i < COUNT; i++) values[i] *= powf(10, (float)(i % 60) - 30);
  values[0] = 0;
  values[1] = -0.0f;
  values[2] = 1e-45f; /* the smallest number there is */
  values[3] = 3.3e38f;
  values[4] = -1e-39f;
}

static void every_bit_comes_back(void **state) {
  (void)state;
  static float values[COUNT], back[COUNT];
  static bf16 high[COUNT];
  static int16_t low[COUNT];
  fill(values);
  master_store(high, low, values, 0, COUNT);
  master_load(back, high, low, 0, COUNT);
  assert_memory_equal(values, back, sizeof values);
}

static void copies_are_nearest(void **state) {
  (void)state;
  static float values[COUNT];
  static bf16 high[COUNT];
  static int16_t low[COUNT];
  fill(values);
  master_store(high, low, values, 0, COUNT);
  for (int i = 0; i < COUNT; i++) {
    const double nearest = (double)bf16_to_float(bf16_from_float(values[i]));
    const double wanted = fabs((double)values[i] - nearest);
    assert_true(fabs((double)values[i] - (double)bf16_to_float(high[i])) <= wanted);
  }
}

static void ranges_leave_the_rest_alone(void **state) {
  (void)state;
  bf16 high[3] = {1, 2, 3};
  int16_t low[3] = {4, 5, 6};
  float value = 1.5f;
  master_store(high, low, &value, 1, 1);
  assert_int_equal(high[0], 1);
  assert_int_equal(high[2], 3);
  assert_int_equal(low[0], 4);
  assert_int_equal(low[2], 6);
  master_load(&value, high, low, 1, 1);
  assert_true(value == 1.5f);
}

static void wide_weights_are_their_own_masters(void **state) {
  (void)state;
  float weights[2] = {1, 2}, values[2] = {3, 4}, back[2];
  master_store(weights, NULL, values, 0, 2);
  master_load(back, weights, NULL, 0, 2);
  assert_memory_equal(values, back, sizeof values);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_bit_comes_back),
      cmocka_unit_test(copies_are_nearest),
      cmocka_unit_test(ranges_leave_the_rest_alone),
      cmocka_unit_test(wide_weights_are_their_own_masters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
