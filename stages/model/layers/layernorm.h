/* Layer norm (Ba, Kiros and Hinton 2016). */
#ifndef STAGES_MODEL_LAYERS_LAYERNORM_H
#define STAGES_MODEL_LAYERS_LAYERNORM_H

#include "stages/model/tape/tape.h"

/* y = (x - mean) / sqrt(variance + epsilon) * gain + bias over each row; gain and bias may be NULL.
 * Local. */
struct value *layernorm_forward(struct tape *tape, struct value *x, struct param *gain,
                                struct param *bias, double epsilon);

#endif
