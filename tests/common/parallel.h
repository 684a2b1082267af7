/* Test programs that run on several ranks: a list of cases, each run by all ranks together. Rank 0
 * prints one TAP line per case, on which all ranks have agreed.
 *
 * A case never returns early on some ranks only: expectations are noted and the case goes on.
 */
#ifndef TESTS_COMMON_PARALLEL_H
#define TESTS_COMMON_PARALLEL_H

#include <stdbool.h>

#include "sharding/comm.h"

struct parallel_test {
  struct comm *world;  /* borrowed */
  bool failed;         /* on this rank */
  char message[1024];  /* of the first failed expectation on this rank */
  const char *skipped; /* why; NULL = not skipped */
};

struct parallel_case {
  const char *name; /* names the requirement it proves, if any */
  void (*run)(struct parallel_test *test);
};

/* Starts MPI, runs the cases, prints the TAP lines, ends MPI. Returns main's exit code. */
int parallel_main(const struct parallel_case *cases, int count);

/* Notes a failure unless `holds`. Returns `holds`. Use parallel_expect. */
bool parallel_note(struct parallel_test *test, bool holds, const char *file, int line,
                   const char *expression);

#define parallel_expect(test, condition)                                                           \
  parallel_note(test, condition, __FILE__, __LINE__, #condition)

/* Notes a failure with the error's message unless `status` is OK. Use parallel_ok. */
bool parallel_status(struct parallel_test *test, enum status status, const char *file, int line);

#define parallel_ok(test, call) parallel_status(test, call, __FILE__, __LINE__)

#endif
