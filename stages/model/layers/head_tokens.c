#include "stages/model/layers/head_tokens.h"

#include <assert.h>
#include <string.h>

#include "stages/model/tape/array.h"

enum { BLOCK_CHUNKS = 4 };

static bool is_measuring(const struct tape *tape) {
  return arena_is_measuring(tape->arena);
}

static bool takes_part(int64_t i, const float *weight, const int32_t *targets) {
  return (!weight || weight[i] != 0) && (!targets || targets[i] >= 0);
}

/* Without weights every token has results, with or without a target. */
static void find_own(struct tape *tape, struct head_tokens *tokens, const float *weight,
                     const int32_t *targets) {
  tokens->index = arena_take(tape->records, (size_t)tokens->n * sizeof(*tokens->index));
  for (int64_t i = 0; i < tokens->n; i++)
    if (is_measuring(tape) || takes_part(i, weight, weight ? targets : NULL))
      tokens->index[tokens->own++] = i;
}

static enum status count_all(struct head_tokens *tokens) {
  TRY(vocab_counts(tokens->vocab, tokens->counts, &tokens->room, tokens->n));
  TRY(vocab_counts(tokens->vocab, tokens->counts, &tokens->total, tokens->own));
  for (int r = 0; r < vocab_member(tokens->vocab); r++) tokens->first += tokens->counts[r];
  return STATUS_OK;
}

static struct head_tiling usual_tiling(int64_t room) {
  const int64_t chunks = (room + HEAD_CHUNK_TOKENS - 1) / HEAD_CHUNK_TOKENS;
  const int64_t most = chunks < BLOCK_CHUNKS ? chunks : BLOCK_CHUNKS;
  return (struct head_tiling){HEAD_CHUNK_TOKENS * (most > 1 ? most : 1), HEAD_CHUNK_ROWS};
}

void head_tokens_open(struct tape *tape, struct head_tokens *tokens, struct vocab *vocab,
                      const struct head_tiling *tiling, int64_t n, const float *weight,
                      const int32_t *targets) {
  *tokens = (struct head_tokens){.vocab = vocab, .n = n};
  const size_t members = (size_t)vocab_members(vocab);
  tokens->counts = arena_take_zeroed(tape->records, members * sizeof(*tokens->counts));
  find_own(tape, tokens, weight, targets);
  if (tape->status == STATUS_OK) tape->status = count_all(tokens);
  tokens->tiling = tiling ? *tiling : usual_tiling(tokens->room);
}

static void gather_in_place(struct tape *tape, const struct head_tokens *tokens, void *all,
                            int64_t row_bytes) {
  if (tape->status != STATUS_OK || is_measuring(tape)) return;
  const unsigned char *own = (const unsigned char *)all + tokens->first * row_bytes;
  tape->status = vocab_gather(tokens->vocab, all, own, tokens->counts, row_bytes);
}

/* Calls `move` for runs of consecutive rows that take part. */
static int64_t run_length(const struct head_tokens *tokens, int64_t begin) {
  int64_t end = begin + 1;
  while (end < tokens->own && tokens->index[end] == tokens->index[end - 1] + 1) end++;
  return end - begin;
}

void *head_tokens_gather_rows(struct tape *tape, const struct head_tokens *tokens,
                              const struct value *x) {
  assert(x->rows == tokens->n);
  const int64_t c = x->cols;
  void *all = array_elements(tape, tokens->room * c);
  for (int64_t i = 0, count; i < tokens->own; i += count) {
    count = run_length(tokens, i);
    tape->kernels->copy_rows(array_at(tape, all, (tokens->first + i) * c),
                             array_at(tape, x->data, tokens->index[i] * x->stride), count, c, c,
                             x->stride, false);
  }
  gather_in_place(tape, tokens, all, c * (int64_t)dtype_bytes(tape->kernels->element));
  return all;
}

void head_tokens_gather(struct tape *tape, const struct head_tokens *tokens, void *all,
                        const void *values, size_t bytes) {
  if (is_measuring(tape)) return;
  for (int64_t i = 0; i < tokens->own; i++)
    memcpy((unsigned char *)all + (size_t)(tokens->first + i) * bytes,
           (const unsigned char *)values + (size_t)tokens->index[i] * bytes, bytes);
  gather_in_place(tape, tokens, all, (int64_t)bytes);
}

struct head_draws head_tokens_gather_draws(struct tape *tape, const struct head_tokens *tokens,
                                           const struct random_stream *streams, int64_t positions) {
  const size_t n = (size_t)tokens->n, room = (size_t)tokens->room;
  struct random_stream *all = tape_save(tape, room * sizeof(*all));
  struct random_stream *own = tape_save(tape, n * sizeof(*own));
  int64_t *all_places = tape_save(tape, room * sizeof(*all_places));
  int64_t *places = tape_save(tape, n * sizeof(*places));
  for (int64_t i = 0; own && i < tokens->n; i++) {
    own[i] = streams[i / positions];
    places[i] = i % positions * tokens->vocab->size;
  }
  head_tokens_gather(tape, tokens, all, own, sizeof(*all));
  head_tokens_gather(tape, tokens, all_places, places, sizeof(*places));
  return (struct head_draws){all, all_places};
}

void head_tokens_gather_sums(struct tape *tape, const struct head_tokens *tokens, void *sums,
                             const float *values) {
  const size_t mark = arena_mark(tape->arena);
  float *all = tape_save(tape, (size_t)tokens->room * sizeof(*all));
  head_tokens_gather(tape, tokens, all, values, sizeof(*all));
  array_put_float_sums(tape, sums, all, tokens->total);
  arena_reset(tape->arena, mark);
}

void head_tokens_open_gradient(struct tape *tape, struct value *x) {
  bool add;
  if (!x->needs_gradient) return;
  void *dx = tape_gradient(tape, x, &add);
  if (!add) tape->kernels->fill_zero(dx, x->rows * x->stride);
}

/* This member's [own, c] of sums[N, c], summed over the group. */
static void *scatter(struct tape *tape, const struct head_tokens *tokens, void *sums, int64_t c) {
  void *own = array_sums(tape, tokens->n * c);
  if (tape->status == STATUS_OK && !is_measuring(tape))
    tape->status = vocab_scatter(tokens->vocab, own, sums, tokens->counts, c, tape->kernels->sum);
  return own;
}

static void move_rows(struct tape *tape, const struct head_tokens *tokens, void *target,
                      int64_t stride, int64_t c, const void *own, bool add) {
  for (int64_t i = 0; i < tokens->own; i++)
    tape->kernels->convert_from_sum(array_at(tape, target, tokens->index[i] * stride),
                                    array_sum_at(tape, own, i * c), c, add);
}

void head_tokens_return(struct tape *tape, const struct head_tokens *tokens, struct value *x,
                        void *sums) {
  bool add;
  void *dx = tape_gradient(tape, x, &add);
  assert(add);
  const size_t mark = arena_mark(tape->arena);
  const void *own = scatter(tape, tokens, sums, x->cols);
  move_rows(tape, tokens, dx, x->stride, x->cols, own, true);
  arena_reset(tape->arena, mark);
}

void head_tokens_return_rows(struct tape *tape, const struct head_tokens *tokens, struct value *y,
                             void *sums) {
  const size_t mark = arena_mark(tape->arena);
  const void *own = scatter(tape, tokens, sums, y->cols);
  move_rows(tape, tokens, y->data, y->stride, y->cols, own, false);
  arena_reset(tape->arena, mark);
}

void head_tokens_own(const struct tape *tape, const struct head_tokens *tokens, double *values,
                     const double *all, double absent) {
  if (!values || is_measuring(tape)) return;
  for (int64_t i = 0; i < tokens->n; i++) values[i] = absent;
  for (int64_t i = 0; i < tokens->own; i++) values[tokens->index[i]] = all[tokens->first + i];
}
