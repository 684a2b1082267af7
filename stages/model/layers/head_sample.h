/* Drawing tokens from the softmax of the vocabulary head without an n x V array. */
#ifndef STAGES_MODEL_LAYERS_HEAD_SAMPLE_H
#define STAGES_MODEL_LAYERS_HEAD_SAMPLE_H

#include <stdint.h>

#include "pipeline/base/random.h"
#include "stages/model/layers/head.h"

/* What is drawn from. */
struct head_law {
  double temperature; /* 0: the most probable id, the lowest on ties */
  double top_p;       /* in (0, 1]: only the most probable ids that have this share together
                         (head_nucleus.h) */
};

/* ids[i] ~ softmax(logits(x_i) / temperature) cut to its nucleus, by the Gumbel-max rule with 53-bit
 * uniforms: row i draws id v at position (i % positions) * V + v of streams[i / positions], so a
 * row's token does not depend on its batch, on slices or on ranks. head->targets and head->weight are not read. No gradient. Collective over the
 * vocabulary group; failures are left in tape->status. */
void head_sample(struct tape *tape, int32_t *ids, struct value *x, const struct head *head,
                 struct head_law law, const struct random_stream *streams, int64_t positions);

#endif
