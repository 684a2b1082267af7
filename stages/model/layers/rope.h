/* Rotary position embedding (Su et al. 2021). */
#ifndef STAGES_MODEL_LAYERS_ROPE_H
#define STAGES_MODEL_LAYERS_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/tape/tape.h"

struct rope {
  int64_t heads;
  double theta;             /* base of the frequencies theta^(-2i / D) */
  bool interleaved;         /* pairs (2i, 2i + 1); otherwise (i, i + D / 2) */
  const int32_t *positions; /* one a row of x, borrowed until the call returns; -1: not rotated */
};

/* Rotates each head of x[n, heads * D]. x may be a view; y is contiguous. Local. */
struct value *rope_forward(struct tape *tape, struct value *x, const struct rope *rope);

#endif
