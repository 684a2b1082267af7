/* R-ARC-1: samples of WebDataset archives: entries with one stem, the text chosen by extension. */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/inputs.h"

/* Documents joined by '|', pairs as source>target|, refusals as !|. */
static enum status add(void *state, const char *bytes, size_t count) {
  TRY(text_add_bytes(state, bytes, count));
  return text_add(state, "|");
}

static enum status add_pair(void *state, const struct document_pair *pair) {
  TRY(text_add_bytes(state, pair->source, pair->source_count));
  TRY(text_add(state, ">"));
  return add(state, pair->target, pair->target_count);
}

static enum status refuse(void *state, const struct refusal *refusal) {
  assert_non_null(strstr(refusal->name, "s.tar"));
  assert_true(strlen(refusal->reason) > 10);
  return text_add(state, refusal->document ? "!|" : "!!|");
}

struct outcome {
  enum status status;
  struct text all;
};

static struct outcome read_samples(const char *path, const char *text, const char *target,
                                   bool tolerant) {
  struct outcome outcome = {.status = STATUS_OK};
  struct options options;
  struct inputs inputs = {0};
  options_defaults(&options);
  options.input = (struct option_texts){.count = 1, .values = {path}};
  options.boundary = BOUNDARY_SAMPLE;
  options.text_key = text;
  options.target_key = target;
  struct splitter splitter =
      splitter_for(&options, (struct document_sink){.add = add,
                                                    .state = &outcome.all,
                                                    .add_pair = target ? add_pair : NULL,
                                                    .refuse = tolerant ? refuse : NULL});
  const struct inputs_request request = inputs_request_of(&options);
  assert_ok(text_add(&outcome.all, ""));
  assert_ok(inputs_list(&inputs, &request));
  for (size_t i = 0; outcome.status == STATUS_OK && i < inputs.unit_count; i++)
    outcome.status = inputs_read(&inputs, &inputs.units[i], &splitter);
  splitter_free(&splitter);
  inputs_free(&inputs);
  return outcome;
}

static void assert_samples(const char *path, const char *text, const char *target,
                           const char *expected) {
  struct outcome outcome = read_samples(path, text, target, false);
  assert_ok(outcome.status);
  assert_string_equal(outcome.all.bytes, expected);
  text_free(&outcome.all);
}

static void run(const char *command) {
  if (system(command) != 0) fail_msg("%s", command); /* NOLINT(cert-env33-c) */
}

static int make(void **state) {
  (void)state;
  run("mkdir -p w/a.b && cd w && head -c 5000 /dev/urandom >a.b/000.jpg && printf one >a.b/000.txt && "
      "printf '{\"caption\": {\"en\": \"ONE\",\\n \"de\": \"EINS\"}}' >a.b/000.json && "
      "printf x >a.b/001.cls && printf 'two\\n\\nlines' >a.b/001.txt && "
      "printf '{\"caption\":{\"en\":\"TWO\",\"de\":\"ZWEI\"}}' >a.b/001.json && "
      "printf three >002.seg.txt && printf 3 >002.txt && "
      "tar -cf ../s.tar a.b/000.jpg a.b/000.txt a.b/000.json a.b/001.cls a.b/001.txt a.b/001.json && "
      "tar -cf ../two-s.tar a.b/000.txt 002.seg.txt 002.txt && gzip -kf ../s.tar");
  return 0;
}

static void the_extension_chooses_the_text(void **state) {
  (void)state;
  assert_samples("s.tar", "txt", NULL, "one|two\n\nlines|");
  assert_samples("s.tar.gz", "txt", NULL, "one|two\n\nlines|");
  assert_samples("s.tar", "json.caption.en", NULL, "ONE|TWO|");
  assert_samples("two-s.tar", "txt", NULL, "one|3|");
}

static void pairs_come_from_two_entries_or_keys(void **state) {
  (void)state;
  assert_samples("s.tar", "txt", "json.caption.de", "one>EINS|two\n\nlines>ZWEI|");
  assert_samples("s.tar", "json.caption.en", "json.caption.de", "ONE>EINS|TWO>ZWEI|");
}

static void samples_without_their_text_are_refused(void **state) {
  (void)state;
  struct outcome outcome = read_samples("two-s.tar", "seg.txt", NULL, false);
  assert_int_equal(outcome.status, STATUS_MISMATCH);
  assert_non_null(strstr(error_message(), "the sample 'two-s.tar: a.b/000.' has no entry for "
                                          "text_key 'seg.txt'"));
  text_free(&outcome.all);
  outcome = read_samples("two-s.tar", "seg.txt", NULL, true);
  assert_ok(outcome.status);
  assert_string_equal(outcome.all.bytes, "!|three|");
  text_free(&outcome.all);
}

static void damaged_samples_are_refused_as_a_whole(void **state) {
  (void)state;
  run("cd w && printf '{\"caption\": {\"en\"' >a.b/000.json && "
      "tar --hard-dereference -cf ../s.tar a.b/000.txt a.b/000.json a.b/001.txt a.b/001.json a.b/001.txt");
  struct outcome outcome = read_samples("s.tar", "txt", "json.caption.en", false);
  assert_int_equal(outcome.status, STATUS_DAMAGED);
  text_free(&outcome.all);
  outcome = read_samples("s.tar", "txt", "json.caption.en", true);
  assert_ok(outcome.status);
  assert_string_equal(outcome.all.bytes, "!|!!|"); /* the second has its text twice */
  text_free(&outcome.all);
}

static void other_files_are_no_samples(void **state) {
  (void)state;
  struct outcome outcome = read_samples("w/002.txt", "txt", NULL, false);
  assert_int_equal(outcome.status, STATUS_MISMATCH);
  assert_non_null(strstr(error_message(), "no archive"));
  text_free(&outcome.all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_extension_chooses_the_text),
      cmocka_unit_test(pairs_come_from_two_entries_or_keys),
      cmocka_unit_test(samples_without_their_text_are_refused),
      cmocka_unit_test(damaged_samples_are_refused_as_a_whole),
      cmocka_unit_test(other_files_are_no_samples),
  };
  return cmocka_run_group_tests_name("samples", tests, make, NULL);
}
