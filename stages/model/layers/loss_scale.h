/* A learned weight of losses: exp(-u) loss + u, whose optimum is u = log of the mean loss. */
#ifndef STAGES_MODEL_LAYERS_LOSS_SCALE_H
#define STAGES_MODEL_LAYERS_LOSS_SCALE_H

#include "stages/model/tape/tape.h"

/* Adds sum_i share[i] * u[i / positions] to the objective, u[n / positions, 1], and sets weight[i]
 * = share[i] * exp(-u[i / positions]), with which the caller weighs loss[i] elsewhere; u gets the
 * gradient of both. Arrays of n = u's rows * positions numbers; share and loss are borrowed until
 * backward. Local. Source: Kendall, Gal and Cipolla (arXiv 1705.07115), section 3.2. */
void loss_scale_forward(struct tape *tape, float *weight, struct value *u, const float *share,
                        const double *loss, int64_t positions);

#endif
