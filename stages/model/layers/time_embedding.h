/* Sinusoidal embedding of times. */
#ifndef STAGES_MODEL_LAYERS_TIME_EMBEDDING_H
#define STAGES_MODEL_LAYERS_TIME_EMBEDDING_H

#include <stdint.h>

#include "stages/model/tape/tape.h"

/* y[n, dim]: cos(t f_k) for k < dim / 2, then sin(t f_k), f_k = max_period^(-k / (dim / 2)). A
 * constant. `dim` is even. Local. */
struct value *time_embedding_forward(struct tape *tape, const double *times, int64_t n, int64_t dim,
                                     double max_period);

/* Gives the embedding y of times[n] the tangent of times that change at rates[n], on a moving tape
 * (tangent.h). Local. */
void time_embedding_move(struct tape *tape, struct value *y, const double *times,
                         const double *rates, double max_period);

#endif
