/* Log, progress, health and cost: what people are shown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/cost.h"
#include "monitoring/health.h"
#include "monitoring/log.h"
#include "monitoring/meter.h"
#include "monitoring/progress.h"
#include "monitoring/straggler.h"
#include "monitoring/timer.h"
#include "pipeline/base/text.h"
#include "tests/common/tap.h"

/* What a log writes into a file when `use` works with it. */
static void expect_log(void (*use)(struct log *), const char *wanted) {
  char found[512] = {0};
  FILE *file = tmpfile();
  assert_non_null(file);
  use(&(struct log){.out = file, .name = "elf"});
  rewind(file);
  found[fread(found, 1, sizeof found - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(found, wanted);
}

static void talk(struct log *log) {
  log_line(log, "hello %d", 1);
  log_warn(log, "odd");
  struct text lines = {0};
  assert_ok(text_add(&lines, "one\ntwo"));
  log_lines(log, &lines);
  log_warn_lines(log, &lines);
  text_free(&lines);
}

static void lines_are_headed(void **state) {
  (void)state;
  expect_log(talk, "elf        hello 1\nelf        warning: odd\nelf        one\nelf        two\n"
                   "elf        warning: one\nelf        warning: two\n");
}

static void silent_logs_say_nothing(void **state) {
  (void)state;
  talk(&(struct log){.name = "elf"});
  talk(NULL);
}

static void times_and_counts_are_short(void **state) {
  (void)state;
  char time[PROGRESS_TIME_BYTES], count[PROGRESS_COUNT_BYTES];
  assert_string_equal(progress_time(time, 41.4), "41 s");
  assert_string_equal(progress_time(time, 185), "3:05");
  assert_string_equal(progress_time(time, 7385), "2:03:05");
  assert_string_equal(progress_time(time, -1), "0 s");
  assert_string_equal(progress_count(count, 950), "950");
  assert_string_equal(progress_count(count, 12345), "12.3k");
  assert_string_equal(progress_count(count, 1.72e6), "1.72M");
  assert_string_equal(progress_count(count, 999600), "1.00M");
}

static void spikes_stand_out(void **state) {
  (void)state;
  struct health health = {0};
  assert_near(health_deviation(&health, 100), 0, 0); /* nothing to compare with */
  for (int i = 0; i < 100; i++) health_accept(&health, 2 + 0.1 * sin(i));
  assert_true(fabs(health_deviation(&health, 2.1)) < HEALTH_SPIKE);
  assert_true(health_deviation(&health, 9) > HEALTH_SPIKE);
  assert_true(health_deviation(&health, 0.1) < 0);
  assert_true(health_finite(1, 2));
  assert_false(health_finite(NAN, 2));
  assert_false(health_finite(1, INFINITY));
}

static void phases_add_up(void **state) {
  (void)state;
  struct timer timer = {0};
  const double begun = timer_now();
  timer_start(&timer);
  assert_int_equal(timer_switch(&timer, TIMER_FORWARD), TIMER_OTHER);
  while (timer_now() - begun < 0.01) continue;
  assert_int_equal(timer_switch(&timer, TIMER_OTHER), TIMER_FORWARD);
  assert_true(timer.seconds[TIMER_FORWARD] >= 0.009);
  assert_near(timer_total(&timer), timer.seconds[TIMER_FORWARD] + timer.seconds[TIMER_OTHER], 1e-9);
  assert_string_equal(timer_phase_name(TIMER_BACKWARD), "backward");
}

/* R-MPI-5 */
static void the_slowest_rank_is_found(void **state) {
  (void)state;
  double seconds[4][TIMER_PHASES] = {{0}};
  for (int r = 0; r < 4; r++) {
    seconds[r][TIMER_FORWARD] = 1 + 0.01 * r;
    seconds[r][TIMER_BACKWARD] = 2;
    seconds[r][TIMER_REDUCE] = r == 1 ? 0 : 5; /* the others wait for it */
  }
  seconds[1][TIMER_BACKWARD] = 3;
  seconds[1][TIMER_FORWARD] = 1.5;
  struct straggler found = straggler_find(&seconds[0][0], 4);
  assert_int_equal(found.rank, 1);
  assert_int_equal(found.phase, TIMER_BACKWARD);
  assert_near(found.ratio, 1.5, 1e-12);
  found = straggler_find(&seconds[0][0], 2); /* of two the lesser is the usual one */
  assert_int_equal(found.rank, 1);
  assert_near(found.seconds, 3, 0);
  found = straggler_find(&seconds[2][0], 1);
  assert_near(found.ratio, 1, 0);
}

static void cost_counts_products(void **state) {
  (void)state;
  const struct cost_model model = {
      .matrix_elements = 1000, .depth = 2, .width = 10, .positions = 50};
  assert_near(cost_forward_flop(&model), 2000 + 4 * 2 * 10 * 50, 0);
  assert_near(cost_training_flop(&model), 3 * (2000 + 4000), 0);
  struct meter meter = {0};
  assert_near(meter_mean(&meter), 0, 0);
  meter_add(&meter, 6, 2);
  meter_add(&meter, 3, 1);
  assert_near(meter_mean(&meter), 3, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_are_headed),
      cmocka_unit_test(silent_logs_say_nothing),
      cmocka_unit_test(times_and_counts_are_short),
      cmocka_unit_test(spikes_stand_out),
      cmocka_unit_test(phases_add_up),
      cmocka_unit_test(the_slowest_rank_is_found),
      cmocka_unit_test(cost_counts_products),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
