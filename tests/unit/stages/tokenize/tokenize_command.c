/* `millrace tokenize`: ids and back, and what it says to wrong flags. */
#include "tests/common/tap.h"

#include <string.h>

#include "stages/tokenize/tokenize_command.h"

static void assert_says(const char *expected, int argc, char *const argv[]) {
  struct text output = {0};
  assert_true(tokenize_command_is_meant(argc, argv));
  assert_ok(tokenize_command(&output, argc, argv));
  assert_string_equal(output.bytes, expected);
  text_free(&output);
}

static void ids_and_text(void **state) {
  (void)state;
  assert_says("104 105\n", 4, (char *[]){"--tokenizer", "byte", "--text", "hi"});
  assert_says("104\th\n105\ti\n", 5, (char *[]){"--tokenizer", "byte", "--text", "hi", "--pieces"});
  assert_says("hi\n", 4, (char *[]){"--tokenizer", "byte", "--decode", "104, 105"});
  assert_says("\n", 4, (char *[]){"--tokenizer", "byte", "--text", ""});
}

static void wrong_flags(void **state) {
  (void)state;
  struct text output = {0};
  assert_false(tokenize_command_is_meant(4, (char *[]){"--run", "x", "--node", "y"}));
  assert_status(STATUS_USAGE, tokenize_command(&output, 2, (char *[]){"--text", "hi"}));
  assert_status(STATUS_USAGE, tokenize_command(&output, 2, (char *[]){"--tokenizer", "byte"}));
  assert_status(STATUS_USAGE, tokenize_command(&output, 1, (char *[]){"--tokenizer"}));
  assert_status(STATUS_USAGE,
                tokenize_command(&output, 4, (char *[]){"--tokenizer", "byte", "--decode", "1 x"}));
  assert_status(STATUS_MISMATCH,
                tokenize_command(&output, 4, (char *[]){"--tokenizer", "byte", "--decode", "999"}));
  assert_non_null(strstr(error_message(), "999"));
  text_free(&output);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ids_and_text), cmocka_unit_test(wrong_flags)};
  return cmocka_run_group_tests_name("tokenize_command", tests, NULL, NULL);
}
