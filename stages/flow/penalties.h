/* What options add to the cross-entropy of a head while training: label smoothing, and the square
 * of the log-sum-exp (z-loss). Both are parts of their own, so that cross-entropies of nodes with
 * other options compare; validation leaves them out.
 */
#ifndef STAGES_FLOW_PENALTIES_H
#define STAGES_FLOW_PENALTIES_H

#include <stdint.h>

#include "stages/flow/flow.h"
#include "stages/model/layers/head.h"

/* Parts of an objective, in this order: the z-loss, then smoothing. */
#define PENALTIES_NAMES "z_loss", "smoothing"

/* Sets weight[2] of the two parts to `covered` tokens where options turn them on. Local. */
void penalties_weights(const struct flow *flow, const struct flow_batch *batch, double covered,
                       double *weight);

/* Turns on what options ask for in a head over n tokens, and makes room for the results in the
 * tape's records. Local. */
void penalties_open(const struct flow *flow, const struct flow_batch *batch, struct tape *tape,
                    int64_t n, struct head *head, struct head_result *result);

/* Adds token i to the parts `part` and `part + 1`; returns what it adds to the loss. Local. */
double penalties_add(const struct head *head, const struct head_result *result, int64_t i,
                     struct flow_losses *losses, int part);

#endif
