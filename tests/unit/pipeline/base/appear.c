/* R-FS-3: files and folders that another host made a moment ago. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pipeline/base/appear.h"
#include "pipeline/base/descriptor.h"
#include "pipeline/base/file.h"
#include "tests/common/tap.h"

/* A file system on which the file HIDDEN fails to open with `cause` until the folder has been read
 * `readings` times. */
static const char HIDDEN[] = "hidden";
static struct { int cause, readings, looks; } late;

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if (strstr(path, HIDDEN)) {
    late.looks++;
    if (late.readings > 0) {
      errno = late.cause;
      return -1;
    }
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

DIR *opendir(const char *path) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  late.readings--;
  return fd < 0 ? NULL : fdopendir(fd);
}

static void hide(int cause, int readings) {
  late.cause = cause;
  late.readings = readings;
  late.looks = 0;
}

static void a_file_appears_when_its_folder_is_read(void **state) {
  (void)state;
  static const int causes[] = {ENOENT, ESTALE};
  int fd;
  assert_ok(file_make_folder("deep"));
  hide(0, 0);
  assert_ok(file_write("deep/hidden", "text", 4));
  for (int i = 0; i < 2; i++) {
    char found[4];
    hide(causes[i], 2);
    assert_ok(descriptor_reopen(&fd, "deep/hidden"));
    assert_int_equal(late.looks, 3);
    assert_ok(descriptor_read(fd, found, 0, sizeof found, "deep/hidden"));
    assert_memory_equal(found, "text", 4);
    close(fd);
    hide(causes[i], 1);
    FILE *stream = appear_stream("deep/hidden");
    assert_non_null(stream);
    assert_int_equal(fgetc(stream), 't');
    fclose(stream);
  }
}

static void other_failures_do_not_wait(void **state) {
  (void)state;
  int fd;
  hide(EACCES, 1000);
  assert_status(STATUS_WRITE, descriptor_reopen(&fd, "hidden"));
  assert_int_equal(late.looks, 1);
}

static void what_never_appears_is_an_error(void **state) {
  (void)state;
  int fd;
  hide(ENOENT, 1000000);
  assert_status(STATUS_WRITE, descriptor_reopen(&fd, "hidden"));
  assert_non_null(strstr(error_message(), "hidden"));
  assert_true(late.looks > 10);
}

static void a_folder_that_exists_is_a_success(void **state) {
  (void)state;
  hide(0, 0);
  assert_ok(file_make_folder("one/two"));
  assert_ok(file_make_folder("one/two"));
  assert_int_equal(symlink("one", "link"), 0);
  assert_ok(file_make_folder("link/two"));
  assert_ok(file_write("taken", "x", 1));
  assert_status(STATUS_WRITE, file_make_folder("taken"));
  assert_non_null(strstr(error_message(), "a file is in the way"));
  assert_status(STATUS_WRITE, file_make_folder("taken/below"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_appears_when_its_folder_is_read),
      cmocka_unit_test(other_failures_do_not_wait),
      cmocka_unit_test(what_never_appears_is_an_error),
      cmocka_unit_test(a_folder_that_exists_is_a_success),
  };
  return cmocka_run_group_tests_name("R-FS-3 what another host made", tests, NULL, NULL);
}
