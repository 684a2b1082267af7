/* Dropout with draws keyed by global sample, so that layouts do not matter (R-ORD-5). */
#ifndef STAGES_MODEL_LAYERS_DROPOUT_H
#define STAGES_MODEL_LAYERS_DROPOUT_H

#include "pipeline/base/random.h"
#include "stages/model/tape/tape.h"

/* y = x / (1 - p) with probability 1 - p, else 0, when tape->training and p > 0; otherwise x
 * itself. Element (row r, column j) is drawn at position (r % positions) * cols + j of streams[r /
 * positions]. `streams` is borrowed until backward. Local. */
struct value *dropout_forward(struct tape *tape, struct value *x, double p,
                              const struct random_stream *streams, int64_t positions);

#endif
