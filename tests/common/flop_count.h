/* A table of kernels that counts the operations of products and attention on their way to another
 * table. One per process. */
#ifndef TESTS_COMMON_FLOP_COUNT_H
#define TESTS_COMMON_FLOP_COUNT_H

#include "stages/model/kernels/kernels.h"

/* Operations so far: two for each multiplication and addition. Attention backward counts four
 * products; the scores, which it makes again, are not counted. */
struct flop_count {
  double forward;  /* linear_forward, linear_forward_sum, attention_forward */
  double backward; /* the others */
};

/* `kernels` becomes a copy of `inner` that counts. Local. */
void flop_count_open(struct kernels *kernels, const struct kernels *inner);

/* The count, which starts again at zero. Local. */
struct flop_count flop_count_take(void);

#endif
