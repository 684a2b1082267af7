/* Multi-head attention with masks given as ranges of visible keys. */
#ifndef STAGES_MODEL_LAYERS_ATTENTION_H
#define STAGES_MODEL_LAYERS_ATTENTION_H

#include <stdint.h>

#include "stages/model/tape/tape.h"

struct attention {
  int64_t batch, queries, keys, heads, head_dim;
  double scale;                         /* 1 / sqrt(head_dim) when 0; T5 uses 1 */
  const struct attention_range *ranges; /* see kernels.h; NULL: full. Borrowed until backward */
  bool shared_ranges;                   /* ranges are [queries] for the whole batch */
  struct value *bias; /* [heads, queries + keys - 1] from relative_bias, or NULL */
};

/* y[batch * queries, heads * head_dim] from q, k, v of that width (views allowed). Local. */
struct value *attention_forward(struct tape *tape, struct value *q, struct value *k,
                                struct value *v, const struct attention *attention);

#endif
