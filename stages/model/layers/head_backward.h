/* What the vocabulary heads share, part four: the one pass that makes gradients.
 *
 * The contributions of the members' tokens to a table are made one member after the other, each as
 * a sum over its own blocks of tokens in order: the same bits for every group size.
 */
#ifndef STAGES_MODEL_LAYERS_HEAD_BACKWARD_H
#define STAGES_MODEL_LAYERS_HEAD_BACKWARD_H

#include <stdint.h>

#include "stages/model/layers/head_tiles.h"
#include "stages/model/layers/head_tokens.h"
#include "stages/model/tape/tape.h"

/* Tokens [token, token + count) of all, times a tile. */
struct head_block {
  struct head_tile tile;
  int64_t token, count;
};

/* Sets dlogits[count, tile.rows] (elements) of a block. */
typedef void head_slope(struct tape *tape, const void *context, const struct head_block *block,
                        void *dlogits);

struct head_backward {
  const struct head_tokens *tokens; /* borrowed */
  struct value *x;
  const void *x_all; /* [N, c] */
  struct param *w, *b;
  head_slope *slope;
  const void *context; /* borrowed */
};

/* Adds the gradients of x, w and b. Failures are left in tape->status. Collective over the
 * vocabulary group. */
void head_backward_pass(struct tape *tape, const struct head_backward *pass);

#endif
