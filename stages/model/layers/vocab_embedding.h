/* Lookup in a table whose rows are sliced over the vocabulary group. */
#ifndef STAGES_MODEL_LAYERS_VOCAB_EMBEDDING_H
#define STAGES_MODEL_LAYERS_VOCAB_EMBEDDING_H

#include <stdint.h>

#include "sharding/vocab.h"
#include "stages/model/tape/tape.h"

/* y[n, c] = table[ids[n]]; exact, since all but one slice give zero. Collective over the vocabulary
 * group, forward and backward. `ids` is borrowed until backward. */
struct value *vocab_embedding_forward(struct tape *tape, struct vocab *vocab, const int32_t *ids,
                                      int64_t n, struct param *table);

#endif
