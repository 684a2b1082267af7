/* What the vocabulary heads share, part one: the tokens of all members of a vocabulary group.
 *
 * Tokens that take no part (weight 0, no target) are left out. The tokens of member 0 come first,
 * and each member's keep their order, so that blocks of tokens are cut alike for every group size.
 */
#ifndef STAGES_MODEL_LAYERS_HEAD_TOKENS_H
#define STAGES_MODEL_LAYERS_HEAD_TOKENS_H

#include <stdint.h>

#include "pipeline/base/random.h"
#include "sharding/vocab.h"
#include "stages/model/tape/tape.h"

/* Sums over tokens and over rows of the table are made in chunks of these sizes, whatever is in
 * memory at once. */
enum { HEAD_CHUNK_TOKENS = 512, HEAD_CHUNK_ROWS = 1024 };

/* Logits that are in memory at once: blocks of tokens times tiles of rows. Sizes that are multiples
 * of the chunks give the same bits. Smaller ones cut the sums elsewhere - within a chunk a sum is
 * one chain of a matrix product - and agree up to rounding (pipeline/docs/decisions/0010). */
struct head_tiling {
  int64_t tokens, rows;
};

struct head_tokens {
  struct vocab *vocab; /* borrowed */
  struct head_tiling tiling;
  int64_t n;          /* rows of this member */
  int64_t *index;     /* [own] which of them take part; in tape->records */
  int64_t *counts;    /* [members] tokens of each member that take part; in tape->records */
  int64_t own, first; /* this member's number, and the place of its first among all */
  int64_t total;      /* N, of all members */
  int64_t room;       /* rows of all members: what arrays are made for, total or more */
};

/* Finds the tokens that take part: those with a weight other than 0, where weights are given, and,
 * unless NULL, a target >= 0. On a measuring tape every token does. Without a tiling (NULL) a
 * tile has the rows of a chunk, and a block up to four chunks of tokens, as many as there are:
 * products copy the rows of the table where they widen them. Failures are left in tape->status.
 * Collective over the group.
 */
void head_tokens_open(struct tape *tape, struct head_tokens *tokens, struct vocab *vocab,
                      const struct head_tiling *tiling, int64_t n, const float *weight,
                      const int32_t *targets);

/* The rows of a value, [N, c] elements for all tokens, and its own rows alone [own, c] in place.
 * Memory of the tape. Collective over the group. */
void *head_tokens_gather_rows(struct tape *tape, const struct head_tokens *tokens,
                              const struct value *x);

/* all[N] = numbers of `bytes` bytes each of all tokens, from values[n] of this member (borrowed).
 * `all` has room for tokens->room of them; nothing is done on a measuring tape. Collective over the
 * group. */
void head_tokens_gather(struct tape *tape, const struct head_tokens *tokens, void *all,
                        const void *values, size_t bytes);

/* Where each of all tokens finds its random numbers: id v's is draw positions[i] + v. */
struct head_draws {
  const struct random_stream *streams; /* [N] */
  const int64_t *positions;            /* [N] */
};

/* The draws of all tokens from the streams[n / positions] of this member's rows, of which position
 * t begins at draw t * V. Memory of the tape. Collective over the group. */
struct head_draws head_tokens_gather_draws(struct tape *tape, const struct head_tokens *tokens,
                                           const struct random_stream *streams, int64_t positions);

/* sums[N] (sum type) = numbers of all tokens, from values[n] of this member. Collective over the
 * group. */
void head_tokens_gather_sums(struct tape *tape, const struct head_tokens *tokens, void *sums,
                             const float *values);

/* Makes the gradient of x ready for head_tokens_return, where one is needed. Called before the
 * scratch of a backward pass is taken. Local. */
void head_tokens_open_gradient(struct tape *tape, struct value *x);

/* Adds sums[N, c], spoiled, over the group and gives each member's tokens back to it, added to the
 * gradient of x, which was opened. Collective over the group. */
void head_tokens_return(struct tape *tape, const struct head_tokens *tokens, struct value *x,
                        void *sums);

/* As head_tokens_return, written to the rows of a constant. All tokens take part. */
void head_tokens_return_rows(struct tape *tape, const struct head_tokens *tokens, struct value *y,
                             void *sums);

/* values[n]: this member's own of all[N], and `absent` for tokens that take no part; `values` may
 * be NULL. Local. */
void head_tokens_own(const struct tape *tape, const struct head_tokens *tokens, double *values,
                     const double *all, double absent);

/* The length of the next piece of [begin, end), in pieces of `size`. Local. */
static inline int64_t head_tokens_piece(int64_t begin, int64_t end, int64_t size) {
  return end - begin < size ? end - begin : size;
}

/* The next block of tokens of one member, which begins at token `begin` and ends before `end`.
 * Local. */
static inline int64_t head_tokens_block(const struct head_tokens *tokens, int64_t begin,
                                        int64_t end) {
  return head_tokens_piece(begin, end, tokens->tiling.tokens);
}

/* Logits of a block of tokens times a tile, and of a chunk of its rows, at most. Local. */
static inline int64_t head_tokens_tile_count(const struct head_tokens *tokens) {
  return tokens->tiling.tokens * tokens->tiling.rows;
}

#endif
