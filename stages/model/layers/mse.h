/* Mean squared error. */
#ifndef STAGES_MODEL_LAYERS_MSE_H
#define STAGES_MODEL_LAYERS_MSE_H

#include "stages/model/tape/tape.h"

/* loss[n] = mean over columns of (x - target)^2 (doubles, written for the caller), and the gradient
 * of sum_i weight[i] * loss[i] in backward. `target` is a value without gradient; `weight` [n] is
 * borrowed until backward. A row of weight 0 gets no gradient. Local. */
void mse_forward(struct tape *tape, double *loss, struct value *x, const struct value *target,
                 const float *weight);

#endif
