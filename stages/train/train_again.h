/* Numbers that were not finite and are when the same step is computed again: the work of a
 * processor or memory that fails now and then, not of the recipe.
 */
#ifndef STAGES_TRAIN_TRAIN_AGAIN_H
#define STAGES_TRAIN_TRAIN_AGAIN_H

#include "stages/train/train.h"

enum { TRAIN_AGAIN_BYTES = 256, TRAIN_AGAIN_HOST_BYTES = 64 };

/* What a rank tells of the two computations. */
struct train_again_rank {
  char host[TRAIN_AGAIN_HOST_BYTES];
  bool other; /* the losses of its own rows had other bits the first time */
};

/* Of this rank's losses of the step. Local. */
uint64_t train_again_hash(const struct train *train);

/* Names the ranks whose losses were others the first time, and their hosts; where there is none (a
 * gradient alone went wrong) all hosts are under suspicion. Local. */
void train_again_name(char out[TRAIN_AGAIN_BYTES], const struct train_again_rank *ranks, int count);

/* Warns that `culprit` was not finite the first time, and where; `first` is train_again_hash of
 * then. Collective over world. */
enum status train_again_report(struct train *train, const char *culprit, uint64_t first);

#endif
