/* Bounds on the negative log-likelihood of held-out text under generators that know one. */
#ifndef STAGES_EVALUATE_LIKELIHOOD_H
#define STAGES_EVALUATE_LIKELIHOOD_H

#include "monitoring/evaluation.h"
#include "stages/evaluate/diversity.h"
#include "stages/flow/solo.h"

/* Adds the bounds of the model of `node`, for every number of steps that the stage's options ask
 * for, over `rows`: the mean over tokens with its standard error over rows. The form "best" takes
 * at every step whichever of gaussian and jensen is lower over all rows together, which stays a
 * bound. Collective over stage->comm. The statuses of deal_rows; MISMATCH when no row has a token;
 * ENVIRONMENT when memory is out. */
enum status likelihood_measure(struct evaluation *evaluation, struct solo *solo,
                               const struct stage *stage, const struct recipe_node *node,
                               struct diversity_rows rows, double tokens_per_byte);

#endif
