/* What the vocabulary heads share, part three: statistics of softmax over all slices. */
#ifndef STAGES_MODEL_LAYERS_HEAD_STATISTICS_H
#define STAGES_MODEL_LAYERS_HEAD_STATISTICS_H

#include <stdint.h>

#include "sharding/vocab.h"
#include "stages/model/layers/head_tokens.h"
#include "stages/model/tape/tape.h"

/* Kinds beside the maximum: relative to it (sum of weight * exp(logit - maximum)), except plain. */
enum head_statistic {
  HEAD_SUM,
  HEAD_SQUARE, /* sum of exp(2 (logit - maximum)) */
  HEAD_CROSS,
  HEAD_RELATIVE,
  HEAD_PLAIN,
  HEAD_STATISTICS = HEAD_PLAIN + 3
};

struct head_tile;

/* Changes logits[count, tile.rows] (sum type) of tokens [first, first + count) before they are read.
 * Local. */
struct head_change {
  void (*apply)(struct tape *tape, const void *context, void *logits, int64_t first, int64_t count,
                struct head_tile tile);
  const void *context;
};

/* [local slices][room] while slices are read, and after combining [N] over the whole vocabulary.
 * Kinds that are not used are NULL. Doubles of the host, in the tape's arena. */
struct head_statistics {
  int64_t room, slices;
  unsigned used; /* bit set of kinds */
  const struct head_change *change; /* borrowed; NULL after opening: none */
  double *maximum;
  double *kinds[HEAD_STATISTICS];
};

/* Takes the memory and sets an empty sum for the kinds in the bit set `kinds`. Local. */
void head_statistics_open(struct tape *tape, struct head_statistics *statistics,
                          const struct head_tokens *tokens, unsigned kinds);

/* Adds what a kernel found in a tile (sum type, [count] each, in the order of kinds; NULL for kinds
 * not used) to tokens [first, first + count) of a slice. Local. */
void head_statistics_add(const struct tape *tape, struct head_statistics *statistics, int64_t slice,
                         int64_t first, int64_t count, const void *maximum,
                         const void *const *found);

/* Combines the slices of all members. Failures are left in tape->status. Collective over the group.
 */
void head_statistics_combine(struct tape *tape, struct head_statistics *statistics,
                             struct vocab *vocab);

/* log-sum-exp of token i, after combining. Local. */
double head_statistics_lse(const struct head_statistics *statistics, int64_t i);

/* sums[N] (sum type) = the log-sum-exps, after combining. Local. */
void head_statistics_lses(const struct tape *tape, const struct head_statistics *statistics,
                          void *sums, int64_t count);

/* One pass over the table: maximum, sum, and of the kinds in use the squares, in HEAD_PLAIN the
 * target's logit and in the next kind the sum of logits, of all tokens x_all[N, c]; combined.
 * targets[N] may be NULL. Collective over the group. */
void head_statistics_pass(struct tape *tape, struct head_statistics *statistics,
                          const struct head_tokens *tokens, const void *x_all,
                          const struct param *w, const struct param *b, const int32_t *targets);

#endif
