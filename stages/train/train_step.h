/* One optimizer step. */
#ifndef STAGES_TRAIN_TRAIN_STEP_H
#define STAGES_TRAIN_TRAIN_STEP_H

#include "stages/train/train.h"
#include "stages/train/train_losses.h"

/* What a step found; the same on all ranks. */
struct train_result {
  struct train_losses losses;
  double loss;
  double gradient_norm; /* before clipping */
  double cosine;        /* with distill_surgery: of the gradients of jumps and of the diagonal */
  double rate;          /* learning rate */
  uint64_t samples;     /* hash of the sample ids */
  int64_t tokens;       /* valid ones */
  const char *culprit;  /* first parameter or part that is not finite, borrowed; NULL: updated */
  const char *vanished; /* ... that was not, until the step was computed again; borrowed; or NULL */
  double deviation;     /* of the loss above those before it (monitoring/health.h) */
  bool stop_requested;  /* by some rank */
  double exposed;       /* seconds that this rank spent in exchanges which no work hid */
};

/* Runs step train->counts.step: forward, backward, sums over ranks, one decision, update; counts
 * it. A step whose loss or gradient is not finite is computed again, if the step before was sound
 * (R-NUM-4); when they come back it changes no weight, no average and no state of the optimizer,
 * and its loss is not among those that later ones are compared with (R-NUM-2). It counts as a step
 * all the same: its rows are spent, and the schedule of the rate goes on (R-NUM-5). Collective over
 * world. DAMAGED for rows that cannot be read, NUMERIC when the update of an earlier step left
 * weights that are not finite. */
enum status train_step(struct train *train, struct train_result *result);

#endif
