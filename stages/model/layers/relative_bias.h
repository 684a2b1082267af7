/* T5 relative position bias (Raffel et al. 2020). */
#ifndef STAGES_MODEL_LAYERS_RELATIVE_BIAS_H
#define STAGES_MODEL_LAYERS_RELATIVE_BIAS_H

#include "stages/model/tape/tape.h"

/* [heads, queries + keys - 1]: bias of each head at offset key - query + queries - 1, from
 * `table` [buckets, heads] (a PARAM_MATRIX). Bidirectional buckets, `max_distance` as in T5 (128).
 * Local. */
struct value *relative_bias_forward(struct tape *tape, struct param *table, int64_t queries,
                                    int64_t keys, int64_t max_distance, bool bidirectional);

#endif
