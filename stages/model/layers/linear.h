/* Linear map. Derivatives: tests/gradient/layers. */
#ifndef STAGES_MODEL_LAYERS_LINEAR_H
#define STAGES_MODEL_LAYERS_LINEAR_H

#include "stages/model/tape/tape.h"

/* y[n, out] = x[n, in] w^T + b. `w` is [out, in]; `b` [out] may be NULL. x may be a view. A fused
 * map (q, k, v; both halves of a gated pair) is one linear whose output is cut by tape_columns.
 * Local. */
struct value *linear_forward(struct tape *tape, struct value *x, struct param *w, struct param *b);

#endif
