/* Lookup in a table that is whole on every rank. */
#ifndef STAGES_MODEL_LAYERS_EMBEDDING_H
#define STAGES_MODEL_LAYERS_EMBEDDING_H

#include <stdint.h>

#include "stages/model/tape/tape.h"

/* y[n, c] = table[ids[n]]. `ids` is borrowed until the backward pass; ids are in [0, rows)
 * (assert). Local. */
struct value *embedding_forward(struct tape *tape, const int32_t *ids, int64_t n,
                                struct param *table);

#endif
