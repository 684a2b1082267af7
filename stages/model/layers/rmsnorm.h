/* Root mean square norm (Zhang and Sennrich 2019), also per head (QK-norm). */
#ifndef STAGES_MODEL_LAYERS_RMSNORM_H
#define STAGES_MODEL_LAYERS_RMSNORM_H

#include "stages/model/tape/tape.h"

/* Normalises each of `groups` equal groups of columns of each row: y = x / sqrt(mean x^2 + epsilon)
 * * gain. groups = 1 is the usual norm; groups = heads with a gain of the head width is QK-norm.
 * `gain` may be NULL. x may be a view; y is contiguous. Statistics in the sum type. Local. */
struct value *rmsnorm_forward(struct tape *tape, struct value *x, struct param *gain,
                              int64_t groups, double epsilon);

#endif
