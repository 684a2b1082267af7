/* Tests that run the stage `tokenize` on ranks of their own choice. */
#ifndef TESTS_COMMON_TOKENIZE_CASE_H
#define TESTS_COMMON_TOKENIZE_CASE_H

#include "pipeline/base/hash.h"
#include "pipeline/config/options.h"
#include "tests/common/parallel.h"

struct tokenize_outcome {
  enum status status;
  char identity[HASH_HEX_BYTES]; /* on rank 0 */
};

/* Makes a folder, on all ranks' behalf. Collective. */
void tokenize_case_folder(struct parallel_test *test, const char *name);

/* Runs the stage into a folder that exists, and writes its manifest. Collective over `comm`. */
struct tokenize_outcome tokenize_case_run(struct comm *comm, const struct options *options,
                                          const char *folder);

/* Runs the stage on rank 0 alone into NAME-alone, then on all ranks into NAME-together, and expects
 * the same outputs. Collective. */
void tokenize_case_compare(struct parallel_test *test, const struct options *options,
                           const char *name);

/* A signal comes after so many units of a rank; -1: never. Local. */
void tokenize_case_stop_after(int units);

#endif
