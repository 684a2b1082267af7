/* Sources and targets: from two files line by line, from two keys, from package descriptions. */
#include "tests/common/tap.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/inputs.h"
#include "tests/common/put_file.h"

/* All pairs as "source>target|". */
static enum status add_pair(void *state, const struct document_pair *pair) {
  struct text *all = state;
  TRY(text_add_bytes(all, pair->source, pair->source_count));
  TRY(text_add(all, ">"));
  TRY(text_add_bytes(all, pair->target, pair->target_count));
  return text_add(all, "|");
}

static enum status read_inputs(struct text *all, const struct inputs *inputs,
                               const struct options *options, uint64_t *empty) {
  struct splitter splitter =
      splitter_for(options, (struct document_sink){.state = all, .add_pair = add_pair});
  enum status status = text_add(all, "");
  for (size_t i = 0; status == STATUS_OK && i < inputs->unit_count; i++)
    status = inputs_read(inputs, &inputs->units[i], &splitter);
  *empty = splitter.empty;
  splitter_free(&splitter);
  return status;
}

static enum status read_all(struct text *all, const struct options *options, uint64_t *empty) {
  struct inputs inputs;
  const struct inputs_request request = inputs_request_of(options);
  text_clear(all);
  TRY(inputs_list(&inputs, &request));
  const enum status status = read_inputs(all, &inputs, options, empty);
  inputs_free(&inputs);
  return status;
}

static void put(const char *path, const char *text) {
  put_file(path, text, strlen(text));
}

static struct options pairs_of(const char *input, const char *target) {
  struct options options;
  options_defaults(&options);
  options.packing = PACKING_PAIRS;
  options.boundary = BOUNDARY_LINE;
  options.input = (struct option_texts){.count = 1, .values = {input}};
  options.target = (struct option_texts){.count = target != NULL, .values = {target}};
  return options;
}

static void assert_pairs(const struct options *options, const char *expected, uint64_t blank) {
  struct text all = {0};
  uint64_t empty = 0;
  assert_ok(read_all(&all, options, &empty));
  assert_string_equal(all.bytes, expected);
  assert_int_equal(empty, blank);
  text_free(&all);
}

static void assert_refused(const struct options *options, const char *message) {
  struct text all = {0};
  uint64_t empty;
  assert_status(STATUS_MISMATCH, read_all(&all, options, &empty));
  if (!strstr(error_message(), message)) fail_msg("%s", error_message());
  text_free(&all);
}

/* A blank line answers a line too: what follows stays aligned. */
static void files(void **state) {
  (void)state;
  put("a.de", "eins\n\nzwei\r\ndrei\n \nvier");
  put("a.en", "one\nnothing\ntwo\n\t\n \nfour\n");
  const struct options options = pairs_of("a.de", "a.en");
  assert_pairs(&options, "eins>one|zwei>two|vier>four|", 3);
}

static void compressed_files(void **state) {
  (void)state;
  if (system("gzip -k a.de && xz -k a.en") != 0) fail(); /* NOLINT(cert-env33-c) */
  const struct options options = pairs_of("a.de.gz", "a.en.xz");
  assert_pairs(&options, "eins>one|zwei>two|vier>four|", 3);
}

/* More lines than the queue holds at a time, of all lengths. */
static void many_lines(void **state) {
  (void)state;
  struct text source = {0}, target = {0}, expected = {0};
  for (int i = 0; i < 3000; i++) {
    assert_ok(text_format(&source, "%d\n", i));
    assert_ok(text_format(&target, "%d %0*d\n", i, i % 700 + 1, i));
    assert_ok(text_format(&expected, "%d>%d %0*d|", i, i, i % 700 + 1, i));
  }
  assert_ok(file_write("many.de", source.bytes, source.length));
  assert_ok(file_write("many.en", target.bytes, target.length));
  const struct options options = pairs_of("many.de", "many.en");
  assert_pairs(&options, expected.bytes, 0);
  text_free(&source);
  text_free(&target);
  text_free(&expected);
}

/* Both files end together, or the one that goes on is named; so are missing ones. */
static void refused_files(void **state) {
  (void)state;
  struct options options = pairs_of("many.de", "a.en");
  assert_refused(&options, "'a.en' ends after 6 lines, but 'many.de' goes on");
  options = pairs_of("a.de", "many.en");
  assert_refused(&options, "'a.de' ends after 6 lines, but 'many.en' goes on");
  options = pairs_of("a.de", "missing.en");
  assert_refused(&options, "missing.en");
  assert_ok(file_make_folder("both"));
  put("both/1", "x\n");
  put("both/2", "y\n");
  options = pairs_of("both", "a.en");
  assert_refused(&options, "`input` holds 2 files and `target` 1");
}

static void keys(void **state) {
  (void)state;
  put("p.jsonl", "{\"de\": \"eins\", \"x\": {\"en\": \"one\"}}\n"
                 "{\"de\": \" \", \"x\": {\"en\": \"nothing\"}}\n"
                 "{\"x\": {\"en\": \"two\"}, \"de\": \"zwei\"}\n");
  struct options options = pairs_of("p.jsonl", NULL);
  options.boundary = BOUNDARY_KEY;
  options.text_key = "de";
  options.target_key = "x.en";
  assert_pairs(&options, "eins>one|zwei>two|", 1);
  options.target_key = "en";
  assert_refused(&options, "has no string under the key 'en'");
}

/* What a package does is the source, its synopsis the target. */
static void packages(void **state) {
  (void)state;
  put("p.packages", "Package: a\nDescription: A thing\n It does this.\n .\n And that.\n\n"
                    "Package: b\nDescription: only this\n\nPackage: c\n");
  struct options options = pairs_of("p.packages", NULL);
  options.boundary = BOUNDARY_PACKAGE;
  assert_pairs(&options, "It does this.\n\nAnd that.>A thing|", 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files),      cmocka_unit_test(compressed_files),
      cmocka_unit_test(many_lines), cmocka_unit_test(refused_files),
      cmocka_unit_test(keys),       cmocka_unit_test(packages),
  };
  return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
