/* Fuzz targets (tests/fuzz). A target is a source with the two functions below; it is linked with
 * the plain driver of tests/fuzz/driver.c, which changes seeds at random, or, built by clang with
 * MODE=fuzz, with libFuzzer. A target must return for every input; a law that it states and that
 * does not hold aborts it, as a sanitizer does.
 */
#ifndef TESTS_COMMON_FUZZ_H
#define TESTS_COMMON_FUZZ_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/text.h"

/* Of the target: takes one input; gives inputs that are sound, or nearly so, to fuzz_seed. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
void fuzz_make_seeds(void);

/* Of the driver: keeps a copy of a seed. */
void fuzz_seed(const void *bytes, size_t count);
void fuzz_seed_text(const char *text);

/* Ends the program, naming the law and the report of the last error, unless it holds. */
void fuzz_require(bool holds, const char *law);

/* A folder of this process, in memory where there is one, which is removed at the end. Borrowed. */
const char *fuzz_folder(void);

/* Makes `name` there hold the bytes; returns its path. Borrowed until the next call. */
const char *fuzz_file(const char *name, const void *bytes, size_t count);

/* Takes a part from the start of the input: a number of 1 to 8 bytes (0 behind the end), a line
 * without its break. */
struct fuzz_input {
  const uint8_t *bytes;
  size_t count;
};
uint64_t fuzz_take(struct fuzz_input *input, size_t bytes);
void fuzz_take_line(struct text *line, struct fuzz_input *input);

#endif
