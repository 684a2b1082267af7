/* Many blocks of random numbers at once, for each instruction set: the same bits from all, since
 * every element goes through the same operations, none of them contracted. Only random*.c include
 * this. */
#ifndef PIPELINE_BASE_RANDOM_BLOCKS_H
#define PIPELINE_BASE_RANDOM_BLOCKS_H

#include <stdint.h>

#include "pipeline/base/random.h"

enum {
  RANDOM_WORDS = 4,   /* of a block */
  RANDOM_BLOCKS = 64, /* made at once at most */
  RANDOM_CHUNK = RANDOM_WORDS * RANDOM_BLOCKS
};

/* Makes what the words of `blocks` blocks from `first` on give: RANDOM_WORDS values of 32 bits
 * each. Local. */
typedef void random_maker(void *values, int blocks, struct random_stream stream, uint64_t first);

struct random_kernel {
  random_maker *bits;    /* uint32_t: the words themselves */
  random_maker *normals; /* float: of each pair of words the cosine's, then the sine's normal (Box
                            and Muller, 1958) */
};

extern const struct random_kernel random_kernel_plain, random_kernel_avx2, random_kernel_avx512;

/* The fastest that this processor runs. Local. */
const struct random_kernel *random_kernel_pick(void);

#endif
