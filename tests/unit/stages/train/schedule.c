/* The laws of the learning rate. */
#include <math.h>

#include "stages/train/schedule.h"
#include "tests/common/tap.h"

static struct options make(enum schedule_choice schedule) {
  struct options options;
  options_defaults(&options);
  options.steps = 100;
  options.warmup_steps = 10;
  options.learning_rate = 0.5;
  options.final_learning_rate = 0.1;
  options.schedule = schedule;
  return options;
}

static void rises_linearly(void **state) {
  (void)state;
  for (int schedule = 0; schedule < 3; schedule++) {
    const struct options options = make((enum schedule_choice)schedule);
    for (int64_t step = 0; step < 10; step++)
      assert_near(schedule_rate(&options, step), 0.05 * (double)(step + 1), 1e-12);
  }
}

static void ends_where_it_should(void **state) {
  (void)state;
  const struct options constant = make(SCHEDULE_CONSTANT), cosine = make(SCHEDULE_COSINE),
                       linear = make(SCHEDULE_LINEAR);
  assert_near(schedule_rate(&constant, 99), 0.5, 1e-12);
  assert_near(schedule_rate(&cosine, 99), 0.05, 1e-12);
  assert_near(schedule_rate(&linear, 99), 0.05, 1e-12);
  assert_near(schedule_rate(&cosine, 10), 0.5, 1e-12);
  assert_near(schedule_rate(&linear, 10), 0.5, 1e-12);
}

static void falls_by_its_law(void **state) {
  (void)state;
  const struct options cosine = make(SCHEDULE_COSINE), linear = make(SCHEDULE_LINEAR);
  for (int64_t step = 10; step < 100; step++) {
    const double done = (double)(step - 10) / 89;
    assert_near(schedule_rate(&linear, step), 0.5 - 0.45 * done, 1e-12);
    assert_near(schedule_rate(&cosine, step), 0.05 + 0.225 * (1 + cos(3.14159265358979 * done)),
                1e-12);
  }
}

static void short_runs_stay_in_range(void **state) {
  (void)state;
  struct options options = make(SCHEDULE_COSINE);
  options.steps = options.warmup_steps = 1;
  assert_near(schedule_rate(&options, 0), 0.5, 1e-12);
  options.warmup_steps = 0;
  assert_near(schedule_rate(&options, 0), 0.05, 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rises_linearly),
      cmocka_unit_test(ends_where_it_should),
      cmocka_unit_test(falls_by_its_law),
      cmocka_unit_test(short_runs_stay_in_range),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
