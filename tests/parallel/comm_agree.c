/* np: 1 2 3 4 */
#include <stdio.h>
#include <string.h>

#include "tests/common/parallel.h"

static enum status fail_with(enum status status, int rank) {
  if (status == STATUS_OK) return STATUS_OK;
  FAIL(status, "file shard-%d.safetensors is cut short", rank);
}

static void all_agree_on_success(struct parallel_test *test) {
  parallel_expect(test, comm_agree(test->world, STATUS_OK) == STATUS_OK);
}

static void one_failure_reaches_all(struct parallel_test *test) {
  struct comm *world = test->world;
  for (int failing = 0; failing < world->size; failing++) {
    char expected[64], head[64];
    error_clear();
    const enum status own = world->rank == failing ? STATUS_DAMAGED : STATUS_OK;
    const enum status agreed = comm_agree(world, fail_with(own, world->rank));
    parallel_expect(test, agreed == STATUS_DAMAGED);
    snprintf(expected, sizeof expected, "file shard-%d.safetensors is cut short", failing);
    snprintf(head, sizeof head, "rank %d on ", failing);
    parallel_expect(test, strstr(error_message(), expected) != NULL);
    parallel_expect(test, world->size == 1 || strncmp(error_message(), head, strlen(head)) == 0);
    parallel_expect(test, strstr(error_trace(), "fail_with") != NULL);
  }
}

static void the_worst_status_wins(struct parallel_test *test) {
  const enum status of_rank[] = {STATUS_STOPPED, STATUS_WRITE, STATUS_DAMAGED, STATUS_ENVIRONMENT};
  const enum status worst[] = {STATUS_STOPPED, STATUS_WRITE, STATUS_DAMAGED, STATUS_DAMAGED};
  const int rank = test->world->rank;
  parallel_expect(test, comm_agree(test->world, fail_with(of_rank[rank], rank)) ==
                            worst[test->world->size - 1]);
}

static void the_lowest_rank_speaks(struct parallel_test *test) {
  const int rank = test->world->rank;
  parallel_expect(test, comm_agree(test->world, fail_with(STATUS_WRITE, rank)) == STATUS_WRITE);
  parallel_expect(test, strstr(error_message(), "shard-0") != NULL);
}

static void long_reports_are_cut(struct parallel_test *test) {
  char path[5000];
  memset(path, 'x', sizeof path - 1);
  path[sizeof path - 1] = '\0';
  enum status status = STATUS_OK;
  if (test->world->rank == 0)
    status = error_raise(STATUS_WRITE, __FILE__, __LINE__, __func__, "%s", path);
  for (int i = 0; i < 200 && status != STATUS_OK; i++) error_pass(status, path, 1, "deep");
  parallel_expect(test, comm_agree(test->world, status) == STATUS_WRITE);
  parallel_expect(test, strstr(error_message(), "xxxx") != NULL);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"all ranks succeed", all_agree_on_success},
      {"R-CKP-3 one rank's failure reaches all, with its message", one_failure_reaches_all},
      {"R-CKP-3 the worst status wins", the_worst_status_wins},
      {"R-CKP-3 of equal failures the lowest rank speaks", the_lowest_rank_speaks},
      {"long messages and traces are cut", long_reports_are_cut},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
