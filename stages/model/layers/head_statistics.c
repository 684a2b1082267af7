#include "stages/model/layers/head_statistics.h"

#include <math.h>

#include "stages/model/layers/head_tiles.h"
#include "stages/model/tape/array.h"

void head_statistics_open(struct tape *tape, struct head_statistics *statistics,
                          const struct head_tokens *tokens, unsigned kinds) {
  *statistics = (struct head_statistics){
      .room = tokens->room, .slices = vocab_slices_local(tokens->vocab), .used = kinds};
  const int64_t count = statistics->room * statistics->slices;
  statistics->maximum = tape_save(tape, (size_t)count * sizeof(double));
  for (int64_t i = 0; statistics->maximum && i < count; i++) statistics->maximum[i] = -INFINITY;
  for (int kind = 0; kind < HEAD_STATISTICS; kind++)
    if (kinds >> kind & 1)
      statistics->kinds[kind] = arena_take_zeroed(tape->arena, (size_t)count * sizeof(double));
}

/* What exp(value - maximum) becomes relative to a larger maximum. */
static double rescale(double maximum, double larger) {
  return maximum == -INFINITY ? 0 : exp(maximum - larger);
}

struct merge {
  double old, new; /* factors of what was there and of what is added */
};

static double merged(enum head_statistic kind, double before, double found, struct merge merge) {
  if (kind >= HEAD_PLAIN) return before + found;
  if (kind != HEAD_SQUARE) return before * merge.old + found * merge.new;
  return before * merge.old * merge.old + found * merge.new *merge.new;
}

static double number(const struct tape *tape, const void *sums, int64_t i) {
  double value = 0;
  array_get_sums(tape, &value, array_sum_at(tape, sums, i), 1);
  return value;
}

void head_statistics_add(const struct tape *tape, struct head_statistics *statistics, int64_t slice,
                         int64_t first, int64_t count, const void *maximum,
                         const void *const *found) {
  if (!maximum) return;
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = slice * statistics->room + first + i;
    const double before = statistics->maximum[at], top = number(tape, maximum, i);
    const double larger = before > top ? before : top;
    const struct merge merge = {rescale(before, larger), rescale(top, larger)};
    statistics->maximum[at] = larger;
    for (int kind = 0; kind < HEAD_STATISTICS; kind++)
      if (statistics->kinds[kind])
        statistics->kinds[kind][at] = merged((enum head_statistic)kind, statistics->kinds[kind][at],
                                             number(tape, found[kind], i), merge);
  }
}

void head_statistics_combine(struct tape *tape, struct head_statistics *statistics,
                             struct vocab *vocab) {
  static double unread; /* a measuring tape has no arrays, but their number counts */
  const bool measures = arena_is_measuring(tape->arena);
  double *kinds[HEAD_STATISTICS];
  for (int kind = 0; kind < HEAD_STATISTICS; kind++)
    kinds[kind] = measures && statistics->used >> kind & 1 ? &unread : statistics->kinds[kind];
  const struct vocab_statistics all = {
      .maximum = measures ? &unread : statistics->maximum,
      .sum = kinds[HEAD_SUM],
      .sum_squares = kinds[HEAD_SQUARE],
      .scaled = {kinds[HEAD_CROSS], kinds[HEAD_RELATIVE]},
      .plain = {kinds[HEAD_PLAIN], kinds[HEAD_PLAIN + 1], kinds[HEAD_PLAIN + 2]}};
  if (tape->status == STATUS_OK)
    tape->status = vocab_combine(vocab, &all, statistics->room, tape->arena);
}

double head_statistics_lse(const struct head_statistics *statistics, int64_t i) {
  return statistics->maximum[i] + log(statistics->kinds[HEAD_SUM][i]);
}

void head_statistics_lses(const struct tape *tape, const struct head_statistics *statistics,
                          void *sums, int64_t count) {
  for (int64_t i = 0; sums && i < count; i++) {
    const double lse = head_statistics_lse(statistics, i);
    array_put_sums(tape, array_sum_at(tape, sums, i), &lse, 1);
  }
}

/* Scratch of a block of tokens times a tile. */
struct scratch {
  void *logits;
  struct softmax_statistics chunk;
};

static void take_scratch(struct tape *tape, const struct head_statistics *statistics,
                         const struct head_tokens *tokens, struct scratch *scratch) {
  const int64_t count = tokens->tiling.tokens;
  *scratch = (struct scratch){.logits = array_sums(tape, head_tokens_tile_count(tokens))};
  scratch->chunk.maximum = array_sums(tape, count);
  scratch->chunk.sum = array_sums(tape, count);
  scratch->chunk.square = array_sums(tape, count);
  scratch->chunk.target_logit = array_sums(tape, count);
  if (statistics->used >> (HEAD_PLAIN + 1) & 1) scratch->chunk.total = array_sums(tape, count);
}

/* Statistics of tokens [token, token + count) over a tile whose logits are made. */
static void add_chunks(struct tape *tape, struct head_statistics *statistics,
                       const struct scratch *scratch, int64_t slice, struct head_tile tile,
                       int64_t token, int64_t count, const int32_t *targets) {
  const void *const found[HEAD_STATISTICS] = {[HEAD_SUM] = scratch->chunk.sum,
                                              [HEAD_SQUARE] = scratch->chunk.square,
                                              [HEAD_PLAIN] = scratch->chunk.target_logit,
                                              [HEAD_PLAIN + 1] = scratch->chunk.total};
  for (struct head_tile chunk = head_tiles_first_chunk(tile); chunk.rows > 0;
       chunk = head_tiles_next(chunk)) {
    array_clear_sums(tape, scratch->chunk.target_logit, count);
    tape->kernels->softmax_tile_statistics(
        &scratch->chunk, array_sum_at(tape, scratch->logits, chunk.first - tile.first), targets,
        count, chunk.rows, chunk.first, tile.rows);
    head_statistics_add(tape, statistics, slice, token, count, scratch->chunk.maximum, found);
  }
}

void head_statistics_pass(struct tape *tape, struct head_statistics *statistics,
                          const struct head_tokens *tokens, const void *x_all,
                          const struct param *w, const struct param *b, const int32_t *targets) {
  struct scratch scratch;
  const size_t mark = arena_mark(tape->arena);
  take_scratch(tape, statistics, tokens, &scratch);
  for (int64_t slice = 0; slice < statistics->slices; slice++)
    for (struct head_tile tile = head_tiles_first(tokens, slice); tile.rows > 0;
         tile = head_tiles_next(tile))
      for (int64_t i = 0, count; i < tokens->total; i += count) {
        count = head_tokens_block(tokens, i, tokens->total);
        head_tiles_logits(tape, scratch.logits, array_at(tape, x_all, i * w->cols), w, b, tile,
                          count);
        if (statistics->change && scratch.logits)
          statistics->change->apply(tape, statistics->change->context, scratch.logits, i, count,
                                    tile);
        add_chunks(tape, statistics, &scratch, slice, tile, i, count, targets ? targets + i : NULL);
      }
  arena_reset(tape->arena, mark);
  head_statistics_combine(tape, statistics, tokens->vocab);
}
