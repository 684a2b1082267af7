/* Pointwise and gated non-linearities. */
#ifndef STAGES_MODEL_LAYERS_FEEDFORWARD_H
#define STAGES_MODEL_LAYERS_FEEDFORWARD_H

#include "stages/model/tape/tape.h"

/* y = act(x). Local. */
struct value *feedforward_activation(struct tape *tape, struct value *x, enum activation kind);

/* y[n, f] = act(x[:, :f]) * x[:, f:] for x[n, 2f]: SwiGLU with SILU, GEGLU with GELU. Local. */
struct value *feedforward_gated(struct tape *tape, struct value *x, enum activation kind);

#endif
