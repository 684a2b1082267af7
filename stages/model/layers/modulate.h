/* AdaLN-Zero modulation (Peebles and Xie 2023). */
#ifndef STAGES_MODEL_LAYERS_MODULATE_H
#define STAGES_MODEL_LAYERS_MODULATE_H

#include "stages/model/tape/tape.h"

/* y = x * (1 + scale) + shift; shift and scale are [n / positions, c] (views of one condition
 * matrix allowed) and serve `positions` consecutive rows. Local. */
struct value *modulate_forward(struct tape *tape, struct value *x, struct value *shift,
                               struct value *scale, int64_t positions);

/* y = x + gate * branch, gate [n / positions, c]. Local. */
struct value *modulate_gate(struct tape *tape, struct value *x, struct value *branch,
                            struct value *gate, int64_t positions);

#endif
