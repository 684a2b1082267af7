#include "stages/model/layers/head_expectation.h"

#include <assert.h>
#include <math.h>

#include "stages/model/layers/head_statistics.h"
#include "stages/model/layers/head_tiles.h"
#include "stages/model/layers/head_tokens.h"
#include "stages/model/tape/array.h"

/* Tokens are taken in chunks for which every slice keeps its own unfinished sum. */
enum { CHUNK_BYTES = 32 << 20 };

struct expectation {
  const struct head *head;
  const struct param *table;
  const struct head_tokens *tokens;
  const void *x_all; /* [N, c] */
  int64_t chunk;     /* tokens at most */
  /* Of a chunk, by local slice: */
  void *sums;             /* [slices][chunk, d] sum of exp(logit - maximum) * row */
  void *maximum, *sum;    /* [slices][chunk] */
  void *logits, *weights; /* of a block times a tile */
  void *rescale;          /* [block] */
  struct head_statistics statistics;
};

static int64_t slices_of(const struct expectation *work) {
  return vocab_slices_local(work->tokens->vocab);
}

/* The same on every member, however the slices are dealt. */
static int64_t chunk_of(const struct tape *tape, const struct expectation *work) {
  const int64_t members = vocab_members(work->tokens->vocab), room = work->tokens->room;
  const int64_t slices = (work->tokens->vocab->slices + members - 1) / members;
  const int64_t row_bytes = work->table->cols * (int64_t)dtype_bytes(tape->kernels->sum);
  const int64_t fitting = CHUNK_BYTES / (slices * row_bytes);
  if (fitting < 1) return 1;
  return fitting > room ? room : fitting;
}

static void take_memory(struct tape *tape, struct expectation *work) {
  const int64_t d = work->table->cols, slices = slices_of(work);
  work->chunk = chunk_of(tape, work);
  work->sums = array_sums(tape, slices * work->chunk * d);
  work->maximum = array_sums(tape, slices * work->chunk);
  work->sum = array_sums(tape, slices * work->chunk);
  work->logits = array_sums(tape, head_tokens_tile_count(work->tokens));
  work->weights = array_elements(tape, work->tokens->tiling.tokens * HEAD_CHUNK_ROWS);
  work->rescale = array_sums(tape, work->tokens->tiling.tokens);
}

static void clear(struct tape *tape, const struct expectation *work) {
  const double empty = -INFINITY;
  const int64_t count = slices_of(work) * work->chunk;
  array_clear_sums(tape, work->sums, count * work->table->cols);
  array_clear_sums(tape, work->sum, count);
  for (int64_t i = 0; work->maximum && i < count; i++)
    array_put_sums(tape, array_sum_at(tape, work->maximum, i), &empty, 1);
}

/* A chunk of a tile's rows whose logits are made, for `count` tokens at `place`. */
static void add_rows(struct tape *tape, const struct expectation *work, struct head_tile tile,
                     struct head_tile rows, int64_t place, int64_t count) {
  const int64_t d = work->table->cols;
  void *sums = array_sum_at(tape, work->sums, place * d);
  tape->kernels->softmax_tile_online(work->weights, array_sum_at(tape, work->maximum, place),
                                     array_sum_at(tape, work->sum, place), work->rescale,
                                     array_sum_at(tape, work->logits, rows.first - tile.first),
                                     count, rows.rows, tile.rows);
  tape->kernels->scale_rows_sum(sums, work->rescale, count, d);
  tape->kernels->linear_backward_input_sum(sums, work->weights,
                                           head_tiles_rows(tape, work->table, rows), count,
                                           rows.rows, d, rows.rows);
}

/* Tokens [first + at, ... + count) of a chunk that begins at `first`, times a tile. */
static void add_block(struct tape *tape, const struct expectation *work, struct head_tile tile,
                      int64_t slice, int64_t first, int64_t at, int64_t count) {
  const struct param *w = work->head->w;
  head_tiles_logits(tape, work->logits, array_at(tape, work->x_all, (first + at) * w->cols), w,
                    work->head->b, tile, count);
  for (struct head_tile rows = head_tiles_first_chunk(tile); rows.rows > 0;
       rows = head_tiles_next(rows))
    add_rows(tape, work, tile, rows, slice * work->chunk + at, count);
}

static void read_slices(struct tape *tape, const struct expectation *work, int64_t first,
                        int64_t count) {
  for (int64_t slice = 0; slice < slices_of(work); slice++)
    for (struct head_tile tile = head_tiles_first(work->tokens, slice); tile.rows > 0;
         tile = head_tiles_next(tile))
      for (int64_t at = 0, block; at < count; at += block) {
        block = head_tokens_block(work->tokens, at, count);
        add_block(tape, work, tile, slice, first, at, block);
      }
}

/* Log-sum-exps of the chunk over the whole vocabulary, and the factor of each slice's sums. */
static void normalise(struct tape *tape, struct expectation *work, double *lse) {
  const int64_t count = slices_of(work) * work->chunk;
  struct head_statistics *statistics = &work->statistics;
  const struct head_tokens chunk = {.vocab = work->tokens->vocab, .room = work->chunk};
  const size_t mark = arena_mark(tape->arena);
  head_statistics_open(tape, statistics, &chunk, 1u << HEAD_SUM);
  array_get_sums(tape, statistics->maximum, work->maximum, count);
  array_get_sums(tape, statistics->kinds[HEAD_SUM], work->sum, count);
  head_statistics_combine(tape, statistics, chunk.vocab);
  for (int64_t i = 0; lse && statistics->maximum && i < work->chunk; i++)
    lse[i] = head_statistics_lse(statistics, i);
  arena_reset(tape->arena, mark);
}

/* maximum of each slice becomes the factor exp(maximum - lse). */
static void make_factors(const struct tape *tape, const struct expectation *work,
                         const double *lse) {
  for (int64_t i = 0; work->maximum && i < slices_of(work) * work->chunk; i++) {
    double value = 0;
    void *place = array_sum_at(tape, work->maximum, i);
    array_get_sums(tape, &value, place, 1);
    value = value == -INFINITY ? 0 : exp(value - lse[i % work->chunk]);
    array_put_sums(tape, place, &value, 1);
  }
}

/* Adds slices [first, first + slices) into the first of them, along the tree. */
static void add_slices(struct tape *tape, const struct expectation *work, int64_t first,
                       int64_t slices) {
  const int64_t size = work->chunk * work->table->cols, left = (slices + 1) / 2;
  if (slices <= 1) return;
  add_slices(tape, work, first, left);
  add_slices(tape, work, first + left, slices - left);
  tape->kernels->add_sum(array_sum_at(tape, work->sums, first * size),
                         array_sum_at(tape, work->sums, (first + left) * size), size);
}

/* sums[N, d] = this member's share of the expectations, lse[N] of all tokens. */
static void run(struct tape *tape, struct expectation *work, void *sums, double *lse) {
  const int64_t d = work->table->cols, total = work->tokens->total;
  for (int64_t first = 0; first < total; first += work->chunk) {
    const int64_t count = total - first < work->chunk ? total - first : work->chunk;
    clear(tape, work);
    read_slices(tape, work, first, count);
    normalise(tape, work, lse ? lse + first : NULL);
    make_factors(tape, work, lse ? lse + first : NULL);
    tape->kernels->scale_rows_sum(work->sums, work->maximum, slices_of(work) * work->chunk, d);
    add_slices(tape, work, 0, slices_of(work));
    tape->kernels->add_sum(array_sum_at(tape, sums, first * d), work->sums, count * d);
  }
}

struct value *head_expectation(struct tape *tape, struct value *x, const struct head *head,
                               const struct param *table) {
  struct value *y = tape_constant(tape, x->rows, table->cols);
  const size_t mark = arena_mark(tape->arena);
  struct head_tokens tokens;
  head_tiles_check(head->vocab, head->w, head->b, x->cols);
  head_tiles_check(head->vocab, table, NULL, table->cols);
  head_tokens_open(tape, &tokens, head->vocab, head->tiling, x->rows, NULL, NULL);
  struct expectation work = {.head = head, .table = table, .tokens = &tokens};
  work.x_all = head_tokens_gather_rows(tape, &tokens, x);
  take_memory(tape, &work);
  void *sums = array_sums_zeroed(tape, tokens.room * table->cols);
  double *lse = tape_save(tape, (size_t)(tokens.room + work.chunk) * sizeof(*lse));
  run(tape, &work, sums, lse);
  head_tokens_return_rows(tape, &tokens, y, sums);
  arena_reset(tape->arena, mark);
  return y;
}
