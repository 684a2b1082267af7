/* What the vocabulary heads share, part five: the best id of each token, with or without noise. */
#ifndef STAGES_MODEL_LAYERS_HEAD_BEST_H
#define STAGES_MODEL_LAYERS_HEAD_BEST_H

#include <stdint.h>

#include "stages/model/layers/head_tokens.h"
#include "stages/model/tape/tape.h"

struct head_best {
  const struct head_tokens *tokens; /* borrowed */
  const void *x_all;                /* [N, c] */
  const struct param *w, *b;
  struct head_draws draws; /* of all tokens; without streams: the most probable id */
  double temperature;
  const double *floors; /* [N] ids of a lower logit are left out; NULL: none are */
};

/* ids[n] of this member's tokens: the highest logit, the lowest id on ties, or with streams the
 * highest logit / temperature + Gumbel noise. -1 for tokens that take no part. Failures are left in
 * tape->status. Collective over the vocabulary group. */
void head_best_find(struct tape *tape, int32_t *ids, const struct head_best *best);

#endif
