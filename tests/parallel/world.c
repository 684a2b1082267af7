/* np: 1 2 3 4 */
#define _GNU_SOURCE /* for sched_setaffinity */
#include "sharding/world.h"

#include <sched.h>
#include <string.h>

#include "tests/common/parallel.h"

static int64_t count_lines(const struct text *lines, const char *words) {
  int64_t count = 0;
  for (const char *at = lines->bytes; at && (at = strstr(at, words)) != NULL; at += strlen(words))
    count++;
  return count;
}

static void describes_every_rank(struct parallel_test *test) {
  struct world_report report;
  struct text lines = {0};
  const struct world_expectation expectation = {.ranks = test->world->size, .session_folder = "/"};
  parallel_ok(test, world_check(test->world, &expectation, &report, &lines));
  parallel_expect(test, report.hosts == 1);
  const int64_t wanted = test->world->rank == 0 ? test->world->size : 0;
  parallel_expect(test, count_lines(&lines, ", processors ") == wanted);
  parallel_expect(test, count_lines(&lines, ", memory nodes ") == wanted);
  text_free(&lines);
}

/* Threads that OpenMP starts inherit where their rank may run. */
static void describes_threads(struct parallel_test *test) {
  struct world_report report;
  struct text lines = {0};
  cpu_set_t before, one;
  const bool known = sched_getaffinity(0, sizeof before, &before) == 0 && CPU_COUNT(&before) > 1;
  const int wanted = test->world->rank == 0 && known ? test->world->size : 0;
  parallel_ok(test, world_check(test->world, &(struct world_expectation){0}, &report, &lines));
  parallel_expect(test, count_lines(&lines, ", 1 thread not bound") == wanted);
  text_clear(&lines);
  size_t first = 0;
  while (known && !CPU_ISSET(first, &before)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  if (known) sched_setaffinity(0, sizeof one, &one);
  parallel_ok(test, world_check(test->world, &(struct world_expectation){0}, &report, &lines));
  parallel_expect(test, count_lines(&lines, ", 1 thread bound") == wanted);
  if (known) sched_setaffinity(0, sizeof before, &before);
  text_free(&lines);
}

/* Gives the first two ranks one core, and the other half of the machine to none. */
static void finds_shared_cores(struct parallel_test *test) {
  struct world_report report;
  struct text lines = {0};
  cpu_set_t before, one;
  const bool bound = sched_getaffinity(0, sizeof before, &before) == 0 && CPU_COUNT(&before) > 1;
  size_t first = 0;
  while (bound && !CPU_ISSET(first, &before)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  if (bound && test->world->rank < 2) sched_setaffinity(0, sizeof one, &one);
  parallel_ok(test, world_check(test->world, &(struct world_expectation){0}, &report, &lines));
  parallel_expect(test, report.cores_shared == (bound && test->world->size > 1));
  parallel_expect(test, test->world->rank > 0 ||
                            count_lines(&lines, "shares a core") == (report.cores_shared ? 1 : 0));
  if (bound) sched_setaffinity(0, sizeof before, &before);
  text_free(&lines);
}

static void refuses_singletons(struct parallel_test *test) {
  struct world_report report;
  struct text lines = {0};
  const struct world_expectation expectation = {.ranks = 8, .launcher = "srun"};
  parallel_expect(test,
                  world_check(test->world, &expectation, &report, &lines) == STATUS_ENVIRONMENT);
  parallel_expect(test, strstr(error_message(), "where srun started 8") != NULL);
  text_free(&lines);
}

static void finds_oversubscription(struct parallel_test *test) {
  struct world_report report;
  struct text lines = {0};
  const struct world_expectation expectation = {.threads = 100000};
  parallel_ok(test, world_check(test->world, &expectation, &report, &lines));
  parallel_expect(test, report.oversubscribed);
  parallel_expect(test, report.yields); /* the tests start MPI so */
  parallel_expect(test, test->world->rank > 0 || count_lines(&lines, "of 100000 threads on ") == 1);
  text_free(&lines);
}

static void refuses_without_shared_memory(struct parallel_test *test) {
  struct world_report report;
  struct text lines = {0};
  const struct world_expectation expectation = {.shared_bytes = UINT64_C(1) << 55};
  parallel_expect(test,
                  world_check(test->world, &expectation, &report, &lines) == STATUS_ENVIRONMENT);
  parallel_expect(test, strstr(error_message(), "/dev/shm has ") != NULL);
  text_free(&lines);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-MPI-1 describes host, processors and memory nodes of every rank", describes_every_rank},
      {"R-MPI-1 says how many threads a rank has and whether they are bound", describes_threads},
      {"R-MPI-1 finds two ranks on one core", finds_shared_cores},
      {"R-MPI-1 refuses singletons, naming the launcher's count", refuses_singletons},
      {"R-MPI-1 finds oversubscription and says whether ranks yield", finds_oversubscription},
      {"R-MPI-6 refuses without space in /dev/shm", refuses_without_shared_memory},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
