/* np: 1 2 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "tests/common/checkpoint_case.h"
#include "tests/common/parallel.h"

/* R-CKP-9, R-FS-6: each call that changes files fails in turn, on the first and on the last rank;
 * what is left must load, and the same save must then succeed.
 *
 * The calls of the C library are replaced in this program. Those on files of the folder FAULTY are
 * counted and fail from one of them on, or at one of them only; all others pass. A file system on
 * which every call fails from some point on is left as a process killed at that point leaves it. */

enum fault_mode {
  FAULT_NONE,
  FAULT_FROM, /* this call and all later ones fail */
  FAULT_ONCE, /* only this one */
  FAULT_SHORT /* this one, if it writes, takes half of its bytes and the next one fails */
};

enum { DESCRIPTORS = 1024 };
static const char FAULTY[] = "faulty";
static struct {
  enum fault_mode mode;
  int call;    /* number of the call that fails */
  int counted; /* calls so far */
  bool ours[DESCRIPTORS];
} fault;

static bool fails(void) {
  if (fault.mode == FAULT_NONE) return false;
  const int number = fault.counted++;
  if (fault.mode == FAULT_FROM && number < fault.call) return false;
  if (fault.mode == FAULT_ONCE && number != fault.call) return false;
  if (fault.mode == FAULT_SHORT && number != fault.call + 1) return false;
  errno = number % 2 ? ENOSPC : EIO;
  return true;
}

static bool path_fails(const char *path) {
  return strstr(path, FAULTY) && fails();
}

static bool descriptor_fails(int fd) {
  return fd >= 0 && fd < DESCRIPTORS && fault.ours[fd] && fails();
}

/* How much of a write passes. */
static size_t taken(int fd, size_t count) {
  const bool ours = fd >= 0 && fd < DESCRIPTORS && fault.ours[fd];
  const bool cut = ours && fault.mode == FAULT_SHORT && fault.counted - 1 == fault.call;
  return cut && count > 1 ? count / 2 : count;
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_DIRECTORY;
  if (writes && path_fails(path)) return -1;
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  if (fd >= 0 && fd < DESCRIPTORS) fault.ours[fd] = strstr(path, FAULTY) != NULL;
  return fd;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  if (descriptor_fails(fd)) return -1;
  return syscall(SYS_write, fd, bytes, taken(fd, count));
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  if (descriptor_fails(fd)) return -1;
  return syscall(SYS_pwrite64, fd, bytes, taken(fd, count), offset);
}

/* Nothing is flushed: the machine does not lose power during the test. */
int fsync(int fd) {
  return descriptor_fails(fd) ? -1 : 0;
}

int close(int fd) {
  if (fd >= 0 && fd < DESCRIPTORS) fault.ours[fd] = false;
  return (int)syscall(SYS_close, fd);
}

int rename(const char *from, const char *to) {
  return path_fails(to) ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int mkdir(const char *path, mode_t mode) {
  return path_fails(path) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int unlink(const char *path) {
  return path_fails(path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int remove(const char *path) {
  if (path_fails(path)) return -1;
  if (syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0) return 0;
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

static void arm(enum fault_mode mode, int call) {
  fault.mode = mode;
  fault.call = call;
  fault.counted = 0;
}

static int disarm(void) {
  fault.mode = FAULT_NONE;
  return fault.counted;
}

static struct checkpoint at(struct comm *comm) {
  const struct checkpoint checkpoint = {
      .comm = comm, .folder = "faulty", .run_id = "test", .keep = {2, 0, -1}, .file_bytes = 600000};
  return checkpoint;
}

static enum status save(const struct checkpoint *checkpoint, int64_t step) {
  struct checkpoint_case made;
  checkpoint_case_make(&made, checkpoint->comm->rank, checkpoint->comm->size, 2);
  made.items.count = 2; /* 981,572 bytes: two files */
  checkpoint_case_fill(&made, step);
  const enum status status = checkpoint_save(checkpoint, step, &made.items, NULL);
  checkpoint_case_free(&made);
  return status;
}

/* The step that loads, whole; -2 when loading fails or gives wrong contents. */
static int64_t load(const struct checkpoint *checkpoint) {
  struct checkpoint_case made;
  int64_t step = -1;
  checkpoint_case_make(&made, checkpoint->comm->rank, checkpoint->comm->size, 0);
  made.items.count = 2;
  const enum status status = checkpoint_load(checkpoint, &step, &made.items, NULL);
  if (status != STATUS_OK || (step >= 0 && !checkpoint_case_is(&made, step))) step = -2;
  checkpoint_case_free(&made);
  return step;
}

/* One save with a fault after the sound step *step, which then moves on. Returns whether the fault
 * was reached. */
static bool try_once(struct parallel_test *test, int victim, enum fault_mode mode, int call,
                     int64_t *step) {
  const struct checkpoint checkpoint = at(test->world);
  const int64_t before = *step, next = ++*step;
  int64_t reached[2] = {0, 0}; /* calls on the victim; whether any rank has failed */
  if (test->world->rank == victim) arm(mode, call);
  const enum status status = save(&checkpoint, next);
  if (test->world->rank == victim) reached[0] = disarm();
  parallel_expect(test, status == STATUS_OK || status == STATUS_WRITE);
  const int64_t found = load(&checkpoint);
  parallel_expect(test, found == next || (found == before && status != STATUS_OK));
  parallel_expect(test, save(&checkpoint, next) == STATUS_OK && load(&checkpoint) == next);
  if (test->failed && test->world->rank == victim)
    printf("# call %d of mode %d on rank %d: status %d, step %d: %s\n", call, (int)mode, victim,
           (int)status, (int)found, error_message());
  reached[1] = test->failed;
  comm_allreduce(test->world, reached, 2, DTYPE_I64, COMM_MAX);
  return reached[0] > call && !reached[1];
}

static void each_call_fails(struct parallel_test *test, enum fault_mode mode) {
  const struct checkpoint checkpoint = at(test->world);
  if (test->world->rank == 0) file_remove(FAULTY);
  comm_barrier(test->world);
  int64_t step = 2;
  parallel_expect(test, save(&checkpoint, 1) == STATUS_OK && save(&checkpoint, 2) == STATUS_OK);
  /* The first rank alone is tried in every mode at np = 1. */
  const int first = mode == FAULT_ONCE ? 0 : test->world->size - 1;
  for (int victim = first; victim < test->world->size; victim++) {
    int call = 0;
    while (try_once(test, victim, mode, call, &step)) call++;
    parallel_expect(test, call >= 3);
    if (test->world->rank == 0) printf("# rank %d makes %d calls\n", victim, call);
  }
}

static void a_rank_dies_at_each_call(struct parallel_test *test) {
  each_call_fails(test, FAULT_FROM);
}

static void one_call_fails(struct parallel_test *test) {
  each_call_fails(test, FAULT_ONCE);
}

static void one_write_is_short(struct parallel_test *test) {
  each_call_fails(test, FAULT_SHORT);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-CKP-9 no call reaches the disk from any one on", a_rank_dies_at_each_call},
      {"R-CKP-9 any one call fails", one_call_fails},
      {"R-CKP-9 any one write is cut in half", one_write_is_short},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
