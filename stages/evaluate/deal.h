/* Sums over rows that are dealt over the ranks in blocks. */
#ifndef STAGES_EVALUATE_DEAL_H
#define STAGES_EVALUATE_DEAL_H

#include <stdint.h>

#include "stages/evaluate/diversity.h"
#include "stages/stage.h"

/* Sets values[block.count][width], zeroed before, to what each row of `block` gives; what rows only
 * give together is set for one of them. `first` is the number of the block's first row. */
typedef enum status deal_block(void *context, struct diversity_rows block, int64_t first,
                               double *values);

struct deal {
  const struct stage *stage; /* its option `batch` is the length of a block; borrowed */
  struct diversity_rows rows;
  deal_block *run;
  void *context;
};

/* values[rows][width], the caller's memory: what every row gives, on every rank. Collective over
 * stage->comm. The statuses of `run`; STOPPED when a stop was requested. */
enum status deal_rows(double *values, int64_t width, const struct deal *deal);

/* sums[width] = the sum over rows, added in their order: the same bits on every rank and for any
 * number of them. Collective over stage->comm. The statuses of deal_rows; ENVIRONMENT when memory is
 * out. */
enum status deal_sum(double *sums, int64_t width, const struct deal *deal);

#endif
