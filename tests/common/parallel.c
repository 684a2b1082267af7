#include "tests/common/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parallel_note(struct parallel_test *test, bool holds, const char *file, int line,
                   const char *expression) {
  if (holds || test->failed) return holds;
  test->failed = true;
  snprintf(test->message, sizeof test->message, "%s:%d: %s", file, line, expression);
  return false;
}

bool parallel_status(struct parallel_test *test, enum status status, const char *file, int line) {
  return status == STATUS_OK || parallel_note(test, false, file, line, error_message());
}

/* The lowest rank on which the case failed, or the number of ranks; its message on all ranks. */
static int64_t agree(struct parallel_test *test) {
  struct comm *world = test->world;
  int64_t first = test->failed ? world->rank : world->size;
  if (comm_allreduce(world, &first, 1, DTYPE_I64, COMM_MIN) != STATUS_OK) abort();
  if (first < world->size &&
      comm_broadcast(world, test->message, (int64_t)sizeof test->message, (int)first) != STATUS_OK)
    abort();
  return first;
}

static void print(const struct parallel_test *test, const char *name, int number, int64_t first) {
  const bool failed = first < test->world->size;
  printf("%s %d - %s%s%s\n", failed ? "not ok" : "ok", number, name,
         test->skipped ? " # SKIP " : "", test->skipped ? test->skipped : "");
  if (failed) printf("# rank %d: %s\n", (int)first, test->message);
  fflush(stdout);
}

static bool run(struct comm *world, const struct parallel_case *item, int number) {
  struct parallel_test test = {.world = world};
  item->run(&test);
  const int64_t first = agree(&test);
  if (world->rank == 0) print(&test, item->name, number, first);
  return first == world->size;
}

int parallel_main(const struct parallel_case *cases, int count) {
  struct comm world;
  int failed = 0;
  if (comm_init(&world, &(struct comm_options){.yield = true}) != STATUS_OK) {
    printf("not ok 1 - MPI starts\n# %s\n", error_message());
    return EXIT_FAILURE;
  }
  if (world.rank == 0) printf("1..%d\n", count);
  for (int i = 0; i < count; i++) failed += !run(&world, &cases[i], i + 1);
  comm_finalize(&world);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
