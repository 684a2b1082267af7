/* Tests that run the stage `tokenize` on ranks of their own choice. */
#ifndef TESTS_COMMON_TOKENIZE_CASE_H
#define TESTS_COMMON_TOKENIZE_CASE_H

#include "pipeline/base/hash.h"
#include "pipeline/base/random.h"
#include "pipeline/base/text.h"
#include "pipeline/config/options.h"
#include "tests/common/parallel.h"

struct tokenize_outcome {
  enum status status;
  char identity[HASH_HEX_BYTES]; /* on rank 0 */
};

/* Adds word `w` of a document, as `draw` has it. Local. */
typedef enum status tokenize_case_word(struct text *text, struct random_stream draw, uint64_t w);

/* Writes FILES files text/I.txt of about 80 I small documents, every tenth one a repetition, from
 * the seed I / share: so many files begin with the same documents. Local. */
enum { TOKENIZE_CASE_FILES = 9 };
enum status tokenize_case_inputs(tokenize_case_word *word, int share);

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
