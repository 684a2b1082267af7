/* metrics.jsonl: no step twice after a resumption, numbers keep every bit, records wait on a full
 * disk. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "monitoring/metric_file.h"
#include "pipeline/base/file.h"
#include "tests/common/tap.h"

static const char path[] = "metrics.jsonl";

static void write_steps(int64_t resumed, int64_t first, int64_t last) {
  struct metric_file file;
  assert_ok(metric_file_open(&file, path, resumed));
  for (int64_t step = first; step <= last; step++) {
    metric_file_begin(&file, "step", step);
    metric_file_real(&file, "loss", 1.0 / (double)step);
    assert_ok(metric_file_end(&file));
  }
  assert_ok(metric_file_sync(&file));
  metric_file_close(&file);
}

static void expect(const char *wanted) {
  struct text text = {0};
  assert_ok(file_read(&text, path));
  assert_string_equal(text.bytes ? text.bytes : "", wanted);
  text_free(&text);
}

static void append(const char *bytes) {
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  fputs(bytes, file);
  fclose(file);
}

static void resuming_drops_later_steps(void **state) {
  (void)state;
  write_steps(-1, 1, 4);
  write_steps(2, 3, 3);
  expect("{\"event\":\"step\",\"step\":1,\"loss\":1}\n"
         "{\"event\":\"step\",\"step\":2,\"loss\":0.5}\n"
         "{\"event\":\"step\",\"step\":3,\"loss\":0.33333333333333331}\n");
  write_steps(-1, 1, 1);
  expect("{\"event\":\"step\",\"step\":1,\"loss\":1}\n");
}

static void a_line_cut_short_goes(void **state) {
  (void)state;
  write_steps(-1, 1, 1);
  append("{\"event\":\"step\",\"step\":2,\"lo");
  write_steps(5, 2, 2);
  expect("{\"event\":\"step\",\"step\":1,\"loss\":1}\n"
         "{\"event\":\"step\",\"step\":2,\"loss\":0.5}\n");
}

static void values_are_json(void **state) {
  (void)state;
  struct metric_file file;
  assert_ok(metric_file_open(&file, path, -1));
  metric_file_begin(&file, "step", 7);
  metric_file_open_group(&file, "parts");
  metric_file_real(&file, "a", NAN);
  metric_file_real(&file, "b", -INFINITY);
  metric_file_close_group(&file);
  metric_file_text(&file, "why", "a \"b\"\n\\");
  metric_file_integer(&file, "big", INT64_MIN);
  assert_ok(metric_file_end(&file));
  metric_file_close(&file);
  expect("{\"event\":\"step\",\"step\":7,\"parts\":{\"a\":\"nan\",\"b\":\"-inf\"},"
         "\"why\":\"a \\\"b\\\"\\u000a\\\\\",\"big\":-9223372036854775808}\n");
}

static void numbers_keep_their_bits(void **state) {
  (void)state;
  const double value = 0.1 + 0.2;
  struct metric_file file;
  struct text text = {0};
  assert_ok(metric_file_open(&file, path, -1));
  metric_file_begin(&file, "x", 0);
  metric_file_real(&file, "v", value);
  assert_ok(metric_file_end(&file));
  metric_file_close(&file);
  assert_ok(file_read(&text, path));
  assert_true(strtod(strstr(text.bytes, "\"v\":") + 4, NULL) == value);
  text_free(&text);
}

static void failures_are_reported(void **state) {
  (void)state;
  struct metric_file file;
  assert_status(STATUS_WRITE, metric_file_open(&file, "no/such/folder/metrics.jsonl", -1));
  assert_ok(metric_file_open(&file, NULL, -1)); /* other ranks keep nothing */
  metric_file_begin(&file, "step", 1);
  assert_ok(metric_file_end(&file));
  metric_file_close(&file);
}

/* R-CKP-4: as on a disk that is full for a while, in the middle of a record. */
static void records_wait_for_room(void **state) {
  (void)state;
  struct metric_file file;
  struct rlimit limit;
  char whole[400] = "";
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit low = {.rlim_cur = 50, .rlim_max = limit.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  assert_ok(metric_file_open(&file, path, -1));
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
  for (int step = 1; step <= 4; step++) {
    metric_file_begin(&file, "step", step);
    assert_ok(metric_file_end(&file)); /* the second one fits in part */
    sprintf(whole + strlen(whole), "{\"event\":\"step\",\"step\":%d}\n", step);
  }
  const enum status full = metric_file_sync(&file);
  setrlimit(RLIMIT_FSIZE, &limit);
  assert_int_equal(full, STATUS_WRITE);
  metric_file_begin(&file, "step", 5);
  assert_ok(metric_file_end(&file));
  assert_ok(metric_file_sync(&file));
  metric_file_close(&file);
  strcat(whole, "{\"event\":\"step\",\"step\":5}\n");
  expect(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(resuming_drops_later_steps),
      cmocka_unit_test(a_line_cut_short_goes),
      cmocka_unit_test(values_are_json),
      cmocka_unit_test(numbers_keep_their_bits),
      cmocka_unit_test(failures_are_reported),
      cmocka_unit_test(records_wait_for_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
