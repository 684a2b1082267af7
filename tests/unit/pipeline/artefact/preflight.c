/* R-FS-1: a place that cannot hold what a job saves is found before its first step. */
#define _GNU_SOURCE
#include "tests/common/tap.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pipeline/artefact/preflight.h"
#include "pipeline/base/file.h"
#include "tests/common/put_file.h"

enum { MIB = 1 << 20 };
static bool lies; /* storage gives other bytes back */

ssize_t pread(int fd, void *out, size_t count, off_t offset) {
  const ssize_t got = syscall(SYS_pread64, fd, out, count, offset);
  if (lies && got > 0) ((unsigned char *)out)[got / 2] ^= 1;
  return got;
}

static enum status check(const char *folder, uint64_t bytes, uint64_t files, struct text *notes) {
  const struct preflight preflight = {.folder = folder, .bytes = bytes, .files = files};
  return preflight_check(&preflight, notes);
}

static void assert_left_empty(const char *folder) {
  char path[128];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/preflight%s", folder, i ? ".part" : "");
    assert_false(file_exists(path));
  }
}

static void good_places_say_nothing(void **state) {
  (void)state;
  const uint64_t sizes[] = {0, 1, MIB, 3 * MIB + 5};
  struct text notes = {0};
  for (int i = 0; i < 4; i++) {
    assert_ok(check("good/place", sizes[i], 4, &notes));
    assert_left_empty("good/place");
  }
  assert_null(notes.bytes);
}

static void small_places_are_told_in_numbers(void **state) {
  (void)state;
  struct text notes = {0};
  assert_ok(check("small", UINT64_C(1) << 60, UINT64_C(1) << 60, &notes));
  assert_non_null(strstr(notes.bytes, "the next two saves need 2.00 EiB, but "));
  assert_non_null(strstr(notes.bytes, "are free in 'small': make room there"));
  assert_left_empty("small");
  text_free(&notes);
}

static void places_that_fail_are_named(void **state) {
  (void)state;
  struct text notes = {0};
  put_file("file", "x", 1);
  assert_int_equal(check("file", 10, 4, &notes), STATUS_WRITE);
  assert_non_null(strstr(error_message(), "'file' does not take what is to be saved there"));
  assert_non_null(strstr(error_message(), "a file is in the way"));
}

/* As where a quota ends. */
static void places_that_fill_up_are_named(void **state) {
  (void)state;
  struct text notes = {0};
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit low = {.rlim_cur = 2 * MIB, .rlim_max = limit.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
  const enum status status = check("quota", 3 * MIB, 4, &notes);
  setrlimit(RLIMIT_FSIZE, &limit);
  assert_int_equal(status, STATUS_WRITE);
  assert_non_null(strstr(error_message(), "look at its free space, quota and permissions"));
  assert_left_empty("quota");
  assert_ok(check("quota", 3 * MIB, 4, &notes));
}

static void storage_that_lies_is_named(void **state) {
  (void)state;
  struct text notes = {0};
  lies = true;
  const enum status status = check("lies", 3 * MIB, 4, &notes);
  lies = false;
  assert_int_equal(status, STATUS_WRITE);
  assert_non_null(
      strstr(error_message(), "bytes 0 to 1048576 come back other than they were written"));
  assert_left_empty("lies");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_places_say_nothing),
      cmocka_unit_test(small_places_are_told_in_numbers),
      cmocka_unit_test(places_that_fail_are_named),
      cmocka_unit_test(places_that_fill_up_are_named),
      cmocka_unit_test(storage_that_lies_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
