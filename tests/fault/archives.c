/* R-ARC-1: odd and broken archives give their documents or are refused by name; nothing is written.
 */
#include "tests/common/archive_case.h"
#include "tests/common/tap.h"

#include <archive.h>
#include <archive_entry.h>
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

struct outcome {
  enum status status;
  struct text all;
  uint64_t binary;
};

static struct outcome read_all(const char *path, enum boundary_choice boundary) {
  struct outcome outcome = {.status = STATUS_OK};
  struct inputs inputs = {0};
  const struct option_texts paths = {.count = 1, .values = {path}};
  struct splitter splitter = {.boundary = boundary, .sink = {.add = add, .state = &outcome.all}};
  outcome.status = inputs_list(
      &inputs,
      &(struct inputs_request){.paths = &paths, .boundary = boundary, .unit_bytes = UNIT_BYTES});
  assert_ok(text_add(&outcome.all, ""));
  for (size_t i = 0; outcome.status == STATUS_OK && i < inputs.unit_count; i++)
    outcome.status = inputs_read(&inputs, &inputs.units[i], &splitter);
  outcome.binary = splitter.binary;
  splitter_free(&splitter);
  inputs_free(&inputs);
  return outcome;
}

static void assert_reads(const char *path, const char *expected) {
  struct outcome outcome = read_all(path, BOUNDARY_FILE);
  assert_ok(outcome.status);
  assert_string_equal(outcome.all.bytes, expected);
  text_free(&outcome.all);
}

static void assert_refused(const char *path, const char *reason) {
  struct outcome outcome = read_all(path, BOUNDARY_FILE);
  assert_int_equal(outcome.status, STATUS_DAMAGED);
  assert_non_null(strstr(error_message(), path));
  if (!strstr(error_message(), reason)) fail_msg("'%s' does not say '%s'", error_message(), reason);
  text_free(&outcome.all);
}

static void run(const char *command) {
  if (system(command) != 0) fail_msg("%s", command); /* NOLINT(cert-env33-c) */
}

/* --- odd archives ---------------------------------------------------------------------------- */

static void write_archive(const char *path, int (*format)(struct archive *),
                          int (*filter)(struct archive *), const struct archive_case_entry *entries,
                          int count) {
  archive_case_write(path, &(struct archive_case_kind){.format = format, .filter = filter}, entries,
                     count);
}

static const struct archive_case_entry odd[] = {
    {.name = "plain.txt", .content = "one"},
    {.name = "../../outside.txt", .content = "two"},
    {.name = "/tmp/absolute.txt", .content = "three"},
    {.name = "latin-\xe4\xff.txt", .content = "four"},
    {.name = "plain.txt", .content = "five"}, /* again */
    {.name = "hard.txt", .link = "plain.txt"},
    {.name = "soft.txt", .link = "/etc/passwd", .symbolic = true},
};

static void odd_names_and_links(void **state) {
  (void)state;
  static const struct {
    const char *path;
    int (*format)(struct archive *), (*filter)(struct archive *);
  } kinds[] = {
      {"odd.tar", archive_write_set_format_gnutar, archive_write_add_filter_none},
      {"odd.tar.gz", archive_write_set_format_ustar, archive_write_add_filter_gzip},
      {"odd.tar.xz", archive_write_set_format_pax_restricted, archive_write_add_filter_xz},
      {"odd.tar.zst", archive_write_set_format_gnutar, archive_write_add_filter_zstd},
      {"odd.tar.bz2", archive_write_set_format_gnutar, archive_write_add_filter_bzip2},
      {"odd.cpio", archive_write_set_format_cpio_newc, archive_write_add_filter_none},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    write_archive(kinds[i].path, kinds[i].format, kinds[i].filter, odd, 7);
    assert_reads(kinds[i].path, "one|two|three|four|five|");
  }
  write_archive("odd.zip", archive_write_set_format_zip, archive_write_add_filter_none, odd, 5);
  assert_reads("odd.zip", "one|two|three|four|five|");
  write_archive("odd.7z", archive_write_set_format_7zip, archive_write_add_filter_none, odd, 3);
  assert_reads("odd.7z", "one|two|three|");
  assert_false(file_exists("../outside.txt"));
  assert_false(file_exists("../../outside.txt"));
  assert_false(file_exists("plain.txt"));
  assert_false(file_exists("/tmp/absolute.txt"));
}

static void nested(void **state) {
  (void)state;
  run("mkdir -p n && printf first >n/a.txt && printf second >n/b.txt && xz -k n/b.txt && "
      "tar -C n -cf n/inner.tar a.txt b.txt.xz && gzip -k n/inner.tar && "
      "head -c 3000 /dev/urandom >n/noise.bin && printf '\\0\\0' >>n/noise.bin && "
      "tar -C n -cf nested.tar inner.tar.gz noise.bin a.txt && bzip2 -k nested.tar");
  struct outcome outcome = read_all("nested.tar.bz2", BOUNDARY_FILE);
  assert_ok(outcome.status);
  assert_string_equal(outcome.all.bytes, "first|second|first|");
  assert_int_equal(outcome.binary, 1);
  text_free(&outcome.all);
  run("cp n/a.txt deep; for i in 1 2 3 4 5 6 7 8 9 10; do gzip -f deep && mv deep.gz deep && "
      "tar -cf deep.tar deep && mv deep.tar deep; done");
  assert_refused("deep", "nested");
}

/* Holes are zeros, as in the file itself. */
static void sparse_files(void **state) {
  (void)state;
  run("printf 'begin\\n' >s.txt && dd if=/dev/zero bs=1 count=9000 2>/dev/null | tr '\\0' x "
      ">>s.txt && "
      "truncate -s 300000 s.txt && printf end >>s.txt && truncate -s 400000 s.txt");
  struct outcome whole = read_all("s.txt", BOUNDARY_FILE);
  assert_ok(whole.status);
  assert_int_equal(whole.all.length, 400001);
  static const char *const formats[] = {"--format=gnu", "--format=posix --sparse-version=0.0",
                                        "--format=posix --sparse-version=0.1",
                                        "--format=posix --sparse-version=1.0"};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    char command[256];
    snprintf(command, sizeof command, "tar --sparse %s -cf s.tar s.txt", formats[i]);
    run(command);
    struct outcome outcome = read_all("s.tar", BOUNDARY_FILE);
    if (outcome.status == STATUS_OK) {
      assert_int_equal(outcome.all.length, whole.all.length);
      assert_memory_equal(outcome.all.bytes, whole.all.bytes, whole.all.length);
    } else {
      assert_int_equal(outcome.status, STATUS_DAMAGED);
      assert_non_null(strstr(error_message(), "s.tar"));
    }
    text_free(&outcome.all);
  }
  text_free(&whole.all);
}

/* A size that the archive cannot hold: in octal, and above 8 GiB in binary. */
static void declared_sizes(void **state) {
  (void)state;
  struct text bytes = {0};
  const struct archive_case_entry one = {.name = "big.txt", .content = "small"};
  write_archive("big.tar", archive_write_set_format_gnutar, archive_write_add_filter_none, &one, 1);
  for (int binary = 0; binary < 2; binary++) {
    text_clear(&bytes);
    assert_ok(file_read(&bytes, "big.tar"));
    char *header = bytes.bytes;
    if (binary)
      memcpy(header + 124, "\x80\0\0\0\0\0\0\x7f\0\0\0\0", 12);
    else
      memcpy(header + 124, "00077777777", 12);
    memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    assert_ok(file_write("bigger.tar", bytes.bytes, bytes.length));
    assert_refused("bigger.tar", "big.txt");
  }
  text_free(&bytes);
}

/* Behind the end mark: another tar is read, zeros are nothing, anything else is refused. */
static void behind_the_end_mark(void **state) {
  (void)state;
  const struct archive_case_entry one = {.name = "one.txt", .content = "one"};
  const struct archive_case_entry two = {.name = "two.txt", .content = "two"};
  write_archive("1.tar", archive_write_set_format_gnutar, archive_write_add_filter_none, &one, 1);
  write_archive("2.tar", archive_write_set_format_ustar, archive_write_add_filter_none, &two, 1);
  run("cat 1.tar 2.tar >both.tar && xz -kf both.tar && head -c 20480 /dev/zero >zeros && "
      "cat both.tar zeros >more.tar && (cat 1.tar; seq 1 300) >rubbish.tar");
  assert_reads("both.tar", "one|two|");
  assert_reads("both.tar.xz", "one|two|");
  assert_reads("more.tar", "one|two|");
  assert_refused("rubbish.tar", "byte");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(odd_names_and_links), cmocka_unit_test(nested),
      cmocka_unit_test(sparse_files),        cmocka_unit_test(declared_sizes),
      cmocka_unit_test(behind_the_end_mark),
  };
  return cmocka_run_group_tests_name("archives", tests, NULL, NULL);
}
