/* What a training costs: floating-point operations from the shapes of the parameters. */
#ifndef MONITORING_COST_H
#define MONITORING_COST_H

#include <stdint.h>

struct cost_model {
  int64_t matrix_elements; /* of all matrices that each token is multiplied by, heads included */
  int64_t depth, width;    /* of the attention layers */
  int64_t positions;       /* keys each token sees */
};

/* Floating-point operations for one token, forward and backward: 6 per element of the matrices (2
 * forward, 4 backward) and 12 positions * width per attention layer (scores and mixing). Local. */
double cost_training_flop(const struct cost_model *model);

/* As cost_training_flop, forward only: a third of it. Local. */
double cost_forward_flop(const struct cost_model *model);

#endif
