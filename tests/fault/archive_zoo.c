/* R-ARC-1: every kind of archive, cut at every place, with a bit flipped in every byte, with every
 * odd name and size, and bombs: the same documents or a refusal by name, nothing written (the child
 * that reads may not), memory bounded. ZOO_ALL=1: at every byte, all eight bits; else at every
 * third, one bit. */
#include "tests/common/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "tests/common/archive_case.h"
#include "tests/common/put_file.h"

enum { MEMORY_MIB = 200, DOCUMENT_MIB = 700 };

static const struct archive_case_entry entries[] = {
    {.name = "a.txt", .content = "one: the first text of three, long enough to be compressed"},
    {.name = "folder/b.txt", .content = "two: the second text, long enough to be compressed too"},
    {.name = "empty.txt", .content = ""},
    {.name = "c.txt", .content = "three"},
};
static const char expected[] = "one: the first text of three, long enough to be compressed|"
                               "two: the second text, long enough to be compressed too|three|";

/* The program zstd writes sums, as libarchive does not. */
static void add_sums(const char *path) {
  char command[128];
  snprintf(command, sizeof command, "zstd -q -f --check zoo.gnu.tar -o %s", path);
  if (system(command) != 0) fail_msg("%s", command); /* NOLINT(cert-env33-c) */
}

static void make(struct text *bytes, const struct archive_case_kind *kind, char path[64]) {
  snprintf(path, 64, "zoo.%s", kind->name);
  archive_case_write(path, kind, entries, 4);
  if (strcmp(kind->name, "tar.zst") == 0) add_sums(path);
  text_clear(bytes);
  assert_ok(file_read(bytes, path));
}

static bool is_expected(const struct archive_case_outcome *outcome) {
  return outcome->status == STATUS_OK && strcmp(outcome->all.bytes, expected) == 0;
}

/* The documents with at most one byte that differs, which content without sums cannot show. */
static bool is_near(const struct archive_case_outcome *outcome) {
  size_t different = 0;
  if (outcome->status != STATUS_OK || outcome->all.length != sizeof expected - 1) return false;
  for (size_t i = 0; i < sizeof expected - 1; i++)
    different += outcome->all.bytes[i] != expected[i];
  return different <= 1;
}

static bool is_refused(const struct archive_case_outcome *outcome, const char *path) {
  return outcome->status == STATUS_DAMAGED && strstr(outcome->message.bytes, path);
}

static int complaints;

static void complain(const char *path, size_t at, const struct archive_case_outcome *outcome) {
  print_message("# %s at byte %zu: status %d, %llu warnings, %llu links, '%s': %s\n", path, at,
                outcome->status, (unsigned long long)outcome->warnings,
                (unsigned long long)outcome->links, outcome->message.bytes, outcome->all.bytes);
  complaints++;
}

static void every_kind_is_read(void **state) {
  (void)state;
  struct text bytes = {0};
  char path[64];
  for (const struct archive_case_kind *kind = archive_case_kinds; kind->name; kind++) {
    make(&bytes, kind, path);
    struct archive_case_outcome outcome = archive_case_read_apart(path, BOUNDARY_FILE, false);
    if (!is_expected(&outcome))
      fail_msg("%s: %s %s", path, outcome.message.bytes, outcome.all.bytes);
    assert_int_equal(outcome.warnings, 0);
    assert_true(outcome.peak_mib < MEMORY_MIB);
    archive_case_free(&outcome);
  }
  text_free(&bytes);
}

/* At every byte; for what has blocks of 512, at every eighth of one. (The first bytes may be
 * letters and digits; so short a beginning is a text.) */
static void every_cut_is_found(void **state) {
  (void)state;
  struct text bytes = {0};
  char path[64];
  int64_t cuts = 0;
  complaints = 0;
  for (const struct archive_case_kind *kind = archive_case_kinds; kind->name; kind++) {
    make(&bytes, kind, path);
    const size_t step = bytes.length > 2000 ? 64 : getenv("ZOO_ALL") ? 1 : 3;
    const size_t first = strcmp(kind->name, "newc.cpio") == 0 ? 128 : step < 16 ? 16 : step;
    for (size_t length = first; length < bytes.length; length += step, cuts++) {
      put_file("cut.bin", bytes.bytes, length);
      struct archive_case_outcome outcome = archive_case_read("cut.bin", BOUNDARY_FILE, false);
      const bool unseen = kind->check == ARCHIVE_CASE_NOTHING && outcome.status == STATUS_OK;
      if (!is_expected(&outcome) && !is_refused(&outcome, "cut.bin") && !unseen)
        complain(path, length, &outcome);
      archive_case_free(&outcome);
    }
  }
  print_message("# %lld cuts, %d of them not found\n", (long long)cuts, complaints);
  assert_int_equal(complaints, 0);
  text_free(&bytes);
}

static bool may_read(const struct archive_case_outcome *outcome,
                     const struct archive_case_kind *kind) {
  if (is_expected(outcome) || is_refused(outcome, "flip.bin")) return true;
  /* where contents have no sum, a space that became a NUL makes an entry binary: counted as such */
  if (kind->check == ARCHIVE_CASE_HEADERS)
    return is_near(outcome) || (outcome->status == STATUS_OK && outcome->binary == 1);
  /* the type of an entry has no sum in a zip: one that became a link is counted as such */
  if (strcmp(kind->name, "zip") == 0 && outcome->status == STATUS_OK) return outcome->links == 1;
  /* without sums anything may be read as long as it is read to its end */
  return kind->check <= ARCHIVE_CASE_NONE &&
         (outcome->status == STATUS_OK || outcome->status == STATUS_MISMATCH);
}

static int64_t flip_all(struct text *bytes, const struct archive_case_kind *kind,
                        const char *path) {
  const int bits = getenv("ZOO_ALL") ? 8 : 1;
  int64_t flips = 0;
  for (size_t at = 0; at < bytes->length; at += getenv("ZOO_ALL") ? 1 : 3) {
    for (int i = 0; i < bits; i++, flips++) {
      const char flip = (char)(1 << (at + (size_t)i) % 8);
      bytes->bytes[at] ^= flip;
      put_file("flip.bin", bytes->bytes, bytes->length);
      bytes->bytes[at] ^= flip;
      struct archive_case_outcome outcome = archive_case_read("flip.bin", BOUNDARY_FILE, false);
      if (!may_read(&outcome, kind)) complain(path, at, &outcome);
      archive_case_free(&outcome);
    }
  }
  return flips;
}

static void every_flipped_bit_is_found(void **state) {
  (void)state;
  struct text bytes = {0};
  char path[64];
  int64_t flips = 0;
  complaints = 0;
  for (const struct archive_case_kind *kind = archive_case_kinds; kind->name; kind++) {
    make(&bytes, kind, path);
    if (kind->filter == archive_write_add_filter_none && bytes.length > 4000 && !getenv("ZOO_ALL"))
      bytes.length = 4000; /* what follows is filled with zeros */
    flips += flip_all(&bytes, kind, path);
  }
  print_message("# %lld flips, %d of them not found\n", (long long)flips, complaints);
  assert_int_equal(complaints, 0);
  text_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_is_read),
      cmocka_unit_test(every_cut_is_found),
      cmocka_unit_test(every_flipped_bit_is_found),
  };
  return cmocka_run_group_tests_name("archive zoo", tests, NULL, NULL);
}
