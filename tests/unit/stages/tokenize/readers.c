/* R-DLM-9, R-ARC-1: readers give each document once, whatever the division into units. */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/tokenize/inputs.h"

/* All documents joined by '|'. */
static enum status add(void *state, const char *bytes, size_t count) {
  struct text *all = state;
  TRY(text_add_bytes(all, bytes, count));
  return text_add(all, "|");
}

static enum status read_all(struct text *all, const char *path, struct splitter model,
                            uint64_t unit_bytes) {
  struct inputs inputs;
  const struct option_texts paths = {.count = 1, .values = {path}};
  model.sink = (struct document_sink){.add = add, .state = all};
  TRY(inputs_list(&inputs, &(struct inputs_request){.paths = &paths,
                                                    .entries = model.entries,
                                                    .boundary = model.boundary,
                                                    .unit_bytes = unit_bytes}));
  enum status status = text_add(all, "");
  for (size_t i = 0; status == STATUS_OK && i < inputs.unit_count; i++)
    status = inputs_read(&inputs, &inputs.units[i], &model);
  splitter_free(&model);
  inputs_free(&inputs);
  return status;
}

static void assert_documents(const char *path, struct splitter model, const char *expected) {
  static const uint64_t sizes[] = {1, 2, 3, 5, 7, 16, 64, UNIT_BYTES};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct text all = {0};
    assert_ok(read_all(&all, path, model, sizes[i]));
    assert_string_equal(all.bytes, expected);
    text_free(&all);
  }
}

static void write_text(const char *path, const char *text) {
  assert_ok(file_write(path, text, strlen(text)));
}

static void run(const char *command) {
  if (system(command) != 0) fail_msg("%s", command); /* NOLINT(cert-env33-c) */
}

static void lines(void **state) {
  (void)state;
  write_text("a.txt", "one\ntwo\r\n\n   \nthree with words\nlast");
  assert_documents("a.txt", (struct splitter){.boundary = BOUNDARY_LINE},
                   "one|two|three with words|last|");
}

static void blank_lines(void **state) {
  (void)state;
  write_text("b.txt", "\n\nfirst\nstill first\n \t\n\nsecond\n\nthird line\nof it\n\n\n");
  assert_documents("b.txt", (struct splitter){.boundary = BOUNDARY_BLANK_LINE},
                   "first\nstill first|second|third line\nof it|");
}

static void whole_files(void **state) {
  (void)state;
  assert_ok(file_make_folder("folder/inner"));
  write_text("folder/2.txt", "two\n\n");
  write_text("folder/10.txt", "ten");
  write_text("folder/inner/3.txt", "three");
  write_text("folder/.hidden", "no");
  assert_documents("folder", (struct splitter){.boundary = BOUNDARY_FILE}, "ten|two\n\n|three|");
}

static void chosen_entries(void **state) {
  (void)state;
  const struct splitter model = {.boundary = BOUNDARY_FILE, .entries = "*2.txt"};
  assert_documents("folder", model, "two\n\n|");
  run("tar -cf chosen.tar folder");
  assert_documents("chosen.tar", model, "two\n\n|");
  run("gzip -c folder/10.txt >plain.gz"); /* what has no name is always read */
  assert_documents("plain.gz", model, "ten|");
}

static void json_lines(void **state) {
  (void)state;
  write_text("c.jsonl",
             "{\"a\": {\"text\": \"x\\ny\"}, \"n\": 1}\n\n{\"a\": {\"text\": \"\\u00e4\"}}\n");
  const struct splitter model = {.boundary = BOUNDARY_KEY, .text_key = "a.text"};
  assert_documents("c.jsonl", model, "x\ny|\xc3\xa4|");
  struct text all = {0};
  assert_status(STATUS_MISMATCH,
                read_all(&all, "c.jsonl",
                         (struct splitter){.boundary = BOUNDARY_KEY, .text_key = "b"}, UNIT_BYTES));
  assert_non_null(strstr(error_message(), "byte 0"));
  write_text("d.jsonl", "{\"text\": \"fine\"}\n{\"text\": \"cut\n");
  assert_status(STATUS_DAMAGED,
                read_all(&all, "d.jsonl",
                         (struct splitter){.boundary = BOUNDARY_KEY, .text_key = "text"},
                         UNIT_BYTES));
  assert_non_null(strstr(error_message(), "byte 17"));
  text_free(&all);
}

static void packages(void **state) {
  (void)state;
  write_text("e.packages",
             "Package: a\nDescription: short\nDescription-md5: 12\nDescription-en: A thing\n"
             " It does\n this.\n .\n List:\n  * one\n  * two\n after\nTag: x\n\n"
             "Package: b\nVersion: 1\n\nPackage: c\nDescription: only this\n");
  assert_documents("e.packages", (struct splitter){.boundary = BOUNDARY_PACKAGE},
                   "A thing\n\nIt does this.\n\nList:\n* one\n* two\nafter|only this|");
  write_text("Translation-de",
             "Package: a\nDescription-md5: 99\nDescription-de: Kurz\n L\xc3\xa4nger\n und "
             "l\xc3\xa4nger.\n\nPackage: b\nDescription-md5: 98\n"
             "Description-de: Zweites\n .\n Ende\n");
  assert_documents("Translation-de", (struct splitter){.boundary = BOUNDARY_PACKAGE},
                   "Kurz\n\nL\xc3\xa4nger und l\xc3\xa4nger.|Zweites\n\nEnde|");
}

static void archives(void **state) {
  (void)state;
  assert_ok(file_make_folder("pack"));
  write_text("pack/a.txt", "first\n\nsecond\n");
  write_text("pack/b.txt", "third");
  run("gzip -kf pack/b.txt && tar --sort=name -czf z.tar.gz -C pack a.txt b.txt b.txt.gz");
  const struct splitter model = {.boundary = BOUNDARY_BLANK_LINE};
  assert_documents("z.tar.gz", model, "first|second|third|third|");
  run("tar -cf inner.tar -C pack a.txt && tar -cf outer.tar inner.tar pack/b.txt && xz -kf "
      "outer.tar");
  assert_documents("outer.tar.xz", model, "first|second|third|");
  assert_documents("pack/b.txt.gz", model, "third|");
}

/* A tar or gzip cut anywhere gives the same documents or a refusal that names it. */
static void truncated_archives(void **state) {
  (void)state;
  assert_ok(file_make_folder("cut"));
  char body[2000];
  memset(body, 'x', sizeof body);
  assert_ok(file_write("cut/a.txt", body, sizeof body));
  write_text("cut/b.txt", "second");
  run("tar -cf whole.tar -C cut a.txt b.txt && gzip -kf whole.tar");
  static const char *const names[] = {"whole.tar", "whole.tar.gz"};
  const struct splitter model = {.boundary = BOUNDARY_FILE};
  struct text whole = {0}, part = {0}, bytes = {0};
  assert_ok(read_all(&whole, "whole.tar", model, UNIT_BYTES));
  for (int i = 0; i < 2; i++) {
    text_clear(&bytes);
    assert_ok(file_read(&bytes, names[i]));
    const size_t step = i ? 1 : 64;
    for (size_t length = step; length < bytes.length; length += step) {
      assert_ok(file_write("part.bin", bytes.bytes, length));
      text_clear(&part);
      const enum status status = read_all(&part, "part.bin", model, UNIT_BYTES);
      if (status == STATUS_OK)
        assert_string_equal(part.bytes, whole.bytes);
      else
        assert_int_equal(status, STATUS_DAMAGED);
      if (status != STATUS_OK) assert_non_null(strstr(error_message(), "part.bin"));
    }
  }
  text_free(&whole);
  text_free(&part);
  text_free(&bytes);
}

static void bad_inputs(void **state) {
  (void)state;
  struct text all = {0};
  const struct splitter model = {.boundary = BOUNDARY_LINE};
  assert_status(STATUS_MISMATCH, read_all(&all, "missing.txt", model, UNIT_BYTES));
  assert_ok(file_make_folder("nothing"));
  assert_status(STATUS_MISMATCH, read_all(&all, "nothing", model, UNIT_BYTES));
  assert_ok(file_write("binary", "a\0b", 3));
  assert_status(STATUS_DAMAGED, read_all(&all, "binary", model, UNIT_BYTES));
  text_free(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines),       cmocka_unit_test(blank_lines),
      cmocka_unit_test(whole_files), cmocka_unit_test(chosen_entries),
      cmocka_unit_test(json_lines),  cmocka_unit_test(packages),
      cmocka_unit_test(archives),    cmocka_unit_test(truncated_archives),
      cmocka_unit_test(bad_inputs),
  };
  return cmocka_run_group_tests_name("readers", tests, NULL, NULL);
}
