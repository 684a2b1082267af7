/* R-ARC-1: odd names, types and sizes, filters in filters, and decompression bombs. Every archive
 * is read in a child that may not write, and whose memory is measured. */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "tests/common/archive_case.h"

/* Sanitizers keep freed memory for a while and surround what is allocated. */
#ifdef __SANITIZE_ADDRESS__
enum { OVERHEAD = 2 };
#else
enum { OVERHEAD = 1 };
#endif
enum { MEMORY_MIB = 200 * OVERHEAD, DOCUMENT_MIB = 700 * OVERHEAD };

static void run(const char *command) {
  if (system(command) != 0) fail_msg("%s", command); /* NOLINT(cert-env33-c) */
}

static void assert_bounded(const struct archive_case_outcome *outcome, long mib) {
  if (outcome->peak_mib >= mib) fail_msg("%ld MiB of memory", outcome->peak_mib);
}

static void assert_reads(const char *path, const char *expected) {
  struct archive_case_outcome outcome = archive_case_read_apart(path, BOUNDARY_FILE, false);
  if (outcome.status != STATUS_OK) fail_msg("%s: %s", path, outcome.message.bytes);
  assert_string_equal(outcome.all.bytes, expected);
  assert_bounded(&outcome, MEMORY_MIB);
  archive_case_free(&outcome);
}

static void assert_refuses(const char *path, enum boundary_choice boundary, enum status status,
                           const char *reason) {
  struct archive_case_outcome outcome = archive_case_read_apart(path, boundary, false);
  if (outcome.status != status || !strstr(outcome.message.bytes, path) ||
      !strstr(outcome.message.bytes, reason))
    fail_msg("%s: status %d, %s", path, outcome.status, outcome.message.bytes);
  assert_bounded(&outcome, boundary == BOUNDARY_LINE ? DOCUMENT_MIB : MEMORY_MIB);
  archive_case_free(&outcome);
}

/* --- names, types, sizes ---------------------------------------------------------------------- */

/* Changes bytes of the tar header at `at`, and puts its sum right. */
static void patch_header(char *header, size_t place, const char *bytes, size_t count) {
  unsigned sum = 0;
  memcpy(header + place, bytes, count);
  memset(header + 148, ' ', 8);
  for (int i = 0; i < 512; i++) sum += (unsigned char)header[i];
  snprintf(header + 148, 8, "%06o", sum);
}

/* A tar of two entries whose first header is changed. */
static void write_patched(const char *path, size_t place, const char *patch, size_t count) {
  static const struct archive_case_entry entries[] = {{.name = "one.txt", .content = "one"},
                                                      {.name = "two.txt", .content = "two"}};
  struct text bytes = {0};
  archive_case_write(path, &archive_case_kinds[0], entries, 2);
  assert_ok(file_read(&bytes, path));
  patch_header(bytes.bytes, place, patch, count);
  assert_ok(file_write(path, bytes.bytes, bytes.length));
  text_free(&bytes);
}

static void odd_names(void **state) {
  (void)state;
  static const struct {
    const char *name;
    size_t length;
  } names[] = {{"\0\0\0\0\0\0\0", 7},
               {"../../millrace-escaped\0", 23},
               {"/millrace-escaped\0", 18},
               {"\xff\xfe.txt", 6},
               {"a\nb.txt", 7},
               {"./././", 6},
               {"..", 3},
               {"C:\\x", 5},
               {"a//b", 5},
               {"%s%n%s%n", 8},
               {"\033[2J", 5}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    write_patched("named.tar", 0, names[i].name, names[i].length);
    assert_reads("named.tar", "one|two|");
  }
  assert_false(file_exists("../../millrace-escaped"));
  assert_false(file_exists("/millrace-escaped"));
}

/* What has no text is left out; what claims content and is no file is refused. */
static void odd_types(void **state) {
  (void)state;
  run("rm -rf types && mkdir -p types/folder && cd types && printf a >a.txt && ln -sf a.txt soft "
      "&& ln -f a.txt "
      "hard && "
      "ln -sf /etc/passwd absolute && ln -sf ../.. up && (rm -f pipe; mkfifo pipe) && "
      "tar -cf ../types.tar a.txt hard soft absolute up pipe folder");
  struct archive_case_outcome outcome = archive_case_read_apart("types.tar", BOUNDARY_FILE, false);
  assert_ok(outcome.status);
  assert_string_equal(outcome.all.bytes, "a|");
  assert_int_equal(outcome.links, 4);
  archive_case_free(&outcome);
  write_patched("device.tar", 156, "3", 1); /* a device of three bytes, which cannot be its own */
  assert_refuses("device.tar", BOUNDARY_FILE, STATUS_DAMAGED, "byte");
}

static void odd_sizes(void **state) {
  (void)state;
  static const struct {
    const char *size;
    const char *reason;
  } sizes[] = {{"77777777777\0", "one.txt"},                                /* 8 GiB - 1 */
               {"\x80\0\0\0\0\0\0\x7f\0\0\0\0", "one.txt"},                 /* 545 GiB */
               {"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", "odd"},       /* 2^63 - 1 */
               {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xf0", "odd"}, /* -16 */
               {"00000077777\0", "one.txt"}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    write_patched("odd.tar", 124, sizes[i].size, 12);
    assert_refuses("odd.tar", BOUNDARY_FILE, STATUS_DAMAGED, sizes[i].reason);
  }
}

/* A pax record that says 9 GiB of an entry of three bytes. */
static void odd_pax_sizes(void **state) {
  (void)state;
  static const struct archive_case_entry entries[] = {
      {.name = "PaxHeader", .content = "19 size=9663676416\n"},
      {.name = "one.txt", .content = "one"}};
  struct text bytes = {0};
  archive_case_write("pax.tar", &archive_case_kinds[2], entries, 2);
  assert_ok(file_read(&bytes, "pax.tar"));
  patch_header(bytes.bytes, 156, "x", 1);
  assert_ok(file_write("pax.tar", bytes.bytes, bytes.length));
  text_free(&bytes);
  assert_refuses("pax.tar", BOUNDARY_FILE, STATUS_DAMAGED, "one.txt");
}

/* 9 GiB of hole behind a little text, in all the ways that GNU tar has. */
static void huge_sparse_files(void **state) {
  (void)state;
  static const char *const formats[] = {"--format=gnu", "--format=posix --sparse-version=0.0",
                                        "--format=posix --sparse-version=0.1",
                                        "--format=posix --sparse-version=1.0"};
  run("yes 'some text' | head -c 9000 >huge.txt && truncate -s 9G huge.txt && printf end "
      ">>huge.txt");
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    char command[256];
    snprintf(command, sizeof command, "tar --sparse %s -cf huge.tar huge.txt", formats[i]);
    run(command);
    assert_refuses("huge.tar", BOUNDARY_LINE, STATUS_DAMAGED, "huge.txt");
  }
  run("rm huge.txt");
}

/* Lines beyond 4 GiB of one file, with holes of 150 MiB between them and enough text in front for
 * no bomb: every byte arrives, also of the holes. */
static void sparse_lines_beyond_32_bits(void **state) {
  (void)state;
  enum { LINES = 30, HOLE_MIB = 150, TEXT = 4000000, LINE = 20 };
  static const char *const formats[] = {"--format=gnu", "--format=posix"};
  run("yes 'some text of a line' | head -c 4000000 >wide.txt && for i in $(seq "
      "30); do truncate -s +150M wide.txt && echo $i >>wide.txt; done");
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    char command[256];
    snprintf(command, sizeof command, "tar --sparse %s -cf wide.tar wide.txt", formats[i]);
    run(command);
    struct archive_case_outcome outcome = archive_case_read_apart("wide.tar", BOUNDARY_LINE, false);
    assert_ok(outcome.status);
    const uint64_t lines = TEXT / LINE, numbers = 9 + 2 * 21;
    assert_int_equal(outcome.documents, lines + LINES);
    assert_true(outcome.bytes > (uint64_t)1 << 32);
    assert_int_equal(outcome.bytes,
                     TEXT - lines + (uint64_t)LINES * HOLE_MIB * (1 << 20) + numbers);
    assert_bounded(&outcome, DOCUMENT_MIB);
    archive_case_free(&outcome);
  }
  run("rm wide.txt wide.tar");
}

/* --- filters in filters, bombs ------------------------------------------------------------------
 */

static void filters_in_filters(void **state) {
  (void)state;
  run("mkdir -p f && cd f && printf inner >t.txt && tar -cf t.tar t.txt && xz -kf t.tar && gzip "
      "-kf t.tar.xz && "
      "bzip2 -kf t.tar.xz.gz && zstd -q -f t.tar.xz.gz.bz2 && cp t.tar.xz.gz.bz2.zst ../chain");
  assert_reads("chain", "inner|");
}

static void flat_bombs(void **state) {
  (void)state;
  static const char *const packers[] = {"zstd -q -19", "xz -1", "bzip2 -1"};
  for (size_t i = 0; i < sizeof packers / sizeof *packers; i++) {
    char command[256];
    snprintf(command, sizeof command,
             "yes $(printf %%0200d 7) | head -c 300000000 | %s -c >bomb.bin", packers[i]);
    run(command);
    assert_refuses("bomb.bin", BOUNDARY_LINE, STATUS_DAMAGED, "decompression bomb");
  }
}

/* Deflate cannot make more than 1032 of one: no bomb by its ratio, but a document beyond the limit,
 * and as lines nothing but many lines. */
static void long_lines(void **state) {
  (void)state;
  run("head -c 300000000 /dev/zero | tr '\\0' x | gzip -1 >long.gz");
  assert_refuses("long.gz", BOUNDARY_LINE, STATUS_MISMATCH, "larger than 256 MiB");
  run("yes $(printf %0200d 7) | head -c 300000000 | gzip -1 >long.gz");
  struct archive_case_outcome outcome = archive_case_read_apart("long.gz", BOUNDARY_LINE, false);
  assert_ok(outcome.status);
  assert_bounded(&outcome, MEMORY_MIB);
  archive_case_free(&outcome);
}

/* Ten archives, each of ten, each of ten bombs: all levels count together, and refusing does not go
 * on to the next one. */
static void nested_bombs(void **state) {
  (void)state;
  run("mkdir -p b && cd b && yes $(printf %0200d 7) | head -c 60000000 | xz -1 -c >0.xz && "
      "for level in 1 2 3; do for i in 0 1 2 3 4 5 6 7 8 9; do cp $((level - 1)).xz part$i; done; "
      "tar -cf - part? | xz -9 -c >$level.xz; done; rm part?");
  assert_refuses("b/3.xz", BOUNDARY_LINE, STATUS_DAMAGED, "decompression bomb");
  struct archive_case_outcome outcome = archive_case_read_apart("b/3.xz", BOUNDARY_LINE, true);
  assert_ok(outcome.status);
  assert_int_equal(outcome.refused, 1);
  assert_bounded(&outcome, MEMORY_MIB);
  archive_case_free(&outcome);
}

/* A zip whose 200 directory entries all name the same data. */
static void overlapping_entries(void **state) {
  (void)state;
  static const struct archive_case_entry one = {.name = "a.txt", .content = "again"};
  struct text bytes = {0}, made = {0};
  archive_case_write("one.zip", &archive_case_kinds[5], &one, 1);
  assert_ok(file_read(&bytes, "one.zip"));
  size_t directory = 0, end = 0;
  for (size_t i = 0; i + 4 <= bytes.length; i++) {
    if (memcmp(bytes.bytes + i, "PK\1\2", 4) == 0) directory = i;
    if (memcmp(bytes.bytes + i, "PK\5\6", 4) == 0) end = i;
  }
  assert_ok(text_add_bytes(&made, bytes.bytes, directory));
  for (int i = 0; i < 200; i++)
    assert_ok(text_add_bytes(&made, bytes.bytes + directory, end - directory));
  const uint32_t size = (uint32_t)(200 * (end - directory));
  bytes.bytes[end + 8] = bytes.bytes[end + 10] = (char)200;
  memcpy(bytes.bytes + end + 12, &size, sizeof size);
  assert_ok(text_add_bytes(&made, bytes.bytes + end, bytes.length - end));
  assert_ok(file_write("many.zip", made.bytes, made.length));
  assert_refuses("many.zip", BOUNDARY_FILE, STATUS_DAMAGED, "directory");
  text_free(&bytes);
  text_free(&made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(odd_names),           cmocka_unit_test(odd_types),
      cmocka_unit_test(odd_sizes),           cmocka_unit_test(odd_pax_sizes),
      cmocka_unit_test(huge_sparse_files),   cmocka_unit_test(sparse_lines_beyond_32_bits),
      cmocka_unit_test(filters_in_filters),  cmocka_unit_test(flat_bombs),
      cmocka_unit_test(long_lines),          cmocka_unit_test(nested_bombs),
      cmocka_unit_test(overlapping_entries),
  };
  return cmocka_run_group_tests_name("odd archives", tests, NULL, NULL);
}
