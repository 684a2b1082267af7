/* The option table: defaults, written form, ranges, conditions, rank counts (R-DLM-10, R-ELA-4). */
#include "tests/common/tap.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/config/options.h"
#include "pipeline/config/ranks.h"

static enum status set(struct options *options, enum option option, const char *value) {
  return options_set(options, option,
                     (struct option_text){.items = &value, .count = 1, .where = "here:1"});
}

static void every_row_is_usable(void **state) {
  (void)state;
  struct options options;
  options_defaults(&options); /* asserts that every default is valid */
  for (int i = 0; i < OPTION_COUNT; i++) {
    const struct option_row *row = options_row((enum option)i);
    assert_int_equal(options_find(row->key), i);
    assert_true(*row->help && row->kinds);
    for (int kind = 0; kind < KIND_COUNT; kind++) /* asserts that conditions name options */
      (void)options_applies(&options, (enum kind)kind, (enum option)i, NULL);
  }
  assert_int_equal(options.steps, 1000);
  assert_true(options.nfe.count == 1 && options.nfe.values[0] == 8);
}

static void values_round_trip(void **state) {
  (void)state;
  struct options options;
  options_defaults(&options);
  assert_ok(set(&options, OPTION_learning_rate, "0.1"));
  assert_ok(set(&options, OPTION_text_key, "a \"b\" \\ c"));
  struct text text = {0};
  assert_ok(options_format(&text, &options, OPTION_learning_rate));
  assert_string_equal(text.bytes, "0.1");
  text_clear(&text);
  options.learning_rate = 1.0 / 3.0;
  assert_ok(options_format(&text, &options, OPTION_learning_rate));
  assert_true(strtod(text.bytes, NULL) == 1.0 / 3.0);
  text_clear(&text);
  assert_ok(options_format(&text, &options, OPTION_text_key));
  assert_string_equal(text.bytes, "\"a \\\"b\\\" \\\\ c\"");
  text_free(&text);
}

static void wrong_values_are_refused(void **state) {
  (void)state;
  struct options options;
  options_defaults(&options);
  assert_status(STATUS_MISMATCH, set(&options, OPTION_steps, "12x"));
  assert_non_null(strstr(error_message(), "here:1: steps: expected an integer from 0 to"));
  assert_status(STATUS_MISMATCH, set(&options, OPTION_steps, "-1"));
  assert_status(STATUS_MISMATCH, set(&options, OPTION_learning_rate, "nan"));
  assert_status(STATUS_MISMATCH, set(&options, OPTION_optimizer, "adanw"));
  assert_non_null(
      strstr(error_message(), "one of: adamw muon, found 'adanw'; did you mean 'adamw'"));
  assert_status(STATUS_MISMATCH, set(&options, OPTION_text_key, "\xff"));
  const char *const two[] = {"1", "2"};
  const struct option_text list = {.items = two, .count = 2, .is_list = true, .where = "here:1"};
  assert_status(STATUS_MISMATCH, options_set(&options, OPTION_steps, list));
  assert_ok(options_set(&options, OPTION_nfe, list));
  assert_int_equal(options.nfe.values[1], 2);
}

static void conditions_decide_what_is_read(void **state) {
  (void)state;
  struct options options;
  const char *why;
  options_defaults(&options);
  assert_false(options_applies(&options, KIND_PRETRAIN, OPTION_muon_momentum, &why));
  assert_string_equal(why, "optimizer=muon");
  options.optimizer = OPTIMIZER_MUON;
  assert_true(options_applies(&options, KIND_PRETRAIN, OPTION_muon_momentum, &why));
  assert_false(options_applies(&options, KIND_TOKENIZE, OPTION_muon_momentum, &why));
  assert_null(why);
}

static void rank_counts_are_listed(void **state) {
  (void)state;
  struct options options;
  options_defaults(&options);
  options.micro_shards = 12;
  options.batch = 24;
  assert_ok(ranks_check(&options, KIND_PRETRAIN, "elf", 4));
  assert_status(STATUS_MISMATCH, ranks_check(&options, KIND_PRETRAIN, "elf", 3));
  assert_non_null(strstr(error_message(), "admissible counts are 1 2 4"));
  options.reductions = REDUCTIONS_FAST;
  options.vocabulary_group = 3;
  assert_status(STATUS_MISMATCH, ranks_check(&options, KIND_PRETRAIN, "elf", 4));
  assert_non_null(strstr(error_message(), "admissible counts are 3 6 12"));
  assert_ok(ranks_check(&options, KIND_TOKENIZE, "tokens", 3));
}

static void help_names_every_option(void **state) {
  (void)state;
  struct text text = {0};
  assert_ok(options_help(&text, KIND_PRETRAIN));
  assert_non_null(strstr(text.bytes, "learning_rate"));
  assert_null(strstr(text.bytes, "vocabulary_size"));
  text_clear(&text);
  assert_ok(options_document(&text));
  assert_non_null(strstr(text.bytes, "| `vocabulary_size` | integer 300..1000000 |"));
  text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_row_is_usable),      cmocka_unit_test(values_round_trip),
      cmocka_unit_test(wrong_values_are_refused), cmocka_unit_test(conditions_decide_what_is_read),
      cmocka_unit_test(rank_counts_are_listed),   cmocka_unit_test(help_names_every_option),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
