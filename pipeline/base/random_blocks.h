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

struct random_kernel {
  /* For b < blocks: bits[RANDOM_WORDS * b + w] = word w of block first + b, and the normals made of
   * those words: of each pair of words the cosine's, then the sine's (Box and Muller, 1958). Local.
   */
  void (*bits)(uint32_t bits[RANDOM_CHUNK], int blocks, struct random_stream stream,
               uint64_t first);
  void (*normals)(float values[RANDOM_CHUNK], int blocks, struct random_stream stream,
                  uint64_t first);
};

extern const struct random_kernel random_kernel_plain, random_kernel_avx2, random_kernel_avx512;

/* The fastest that this processor runs. Local. */
const struct random_kernel *random_kernel_pick(void);

#endif
