/* Changes seeds at random, for the plain driver of the fuzz targets. */
#ifndef TESTS_COMMON_FUZZ_CHANGE_H
#define TESTS_COMMON_FUZZ_CHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/text.h"

enum { FUZZ_SEEDS = 64, FUZZ_BYTES = 1 << 20 };

struct fuzz_seeds {
  size_t count;
  struct text items[FUZZ_SEEDS]; /* owned */
};

/* Makes input number `index`: a seed with one to sixteen changes: bits, bytes, numbers, pieces that
 * are removed, repeated, moved, or taken from another seed. A function of its arguments; at most
 * FUZZ_BYTES long. */
void fuzz_change(struct text *input, const struct fuzz_seeds *seeds, uint64_t seed, uint64_t index);

#endif
