#include "stages/model/layers/head_bend.h"

#include "stages/model/layers/head_statistics.h"
#include "stages/model/tape/array.h"

static void make_rates(struct tape *tape, const struct head_bent *bent,
                       const struct head_block *block, void *rates) {
  const void *from = array_at(tape, bent->rate, block->token * bent->w->cols);
  head_tiles_logits(tape, rates, from, bent->w, NULL, block->tile, block->count);
}

void head_bend_block(struct tape *tape, const struct head_bent *bent,
                     const struct head_block *block, void *logits, void *rates) {
  make_rates(tape, bent, block, rates);
  tape->kernels->bend_tile(logits, rates, array_sum_at(tape, bent->mean, block->token),
                           array_sum_at(tape, bent->a, block->token),
                           array_sum_at(tape, bent->b, block->token), block->count,
                           block->tile.rows);
}

/* Scratch of a block of tokens times a tile. */
struct scratch {
  void *logits, *rates;
  void *maximum, *sum, *cross;
};

static struct scratch take_scratch(struct tape *tape, const struct head_tokens *tokens) {
  const int64_t count = head_tokens_tile_count(tokens), n = tokens->tiling.tokens;
  return (struct scratch){.logits = array_sums(tape, count),
                          .rates = array_sums(tape, count),
                          .maximum = array_sums(tape, n),
                          .sum = array_sums(tape, n),
                          .cross = array_sums(tape, n)};
}

/* The student's softmax of a block, averaging its rates. */
struct student {
  const struct head_bent *bent;
  const struct head *head;
  const void *x_all;
  struct scratch scratch;
};

static void add_block(struct tape *tape, const struct student *student,
                      struct head_statistics *statistics, int64_t slice,
                      const struct head_block *block) {
  const struct scratch *scratch = &student->scratch;
  const struct param *w = student->head->w;
  const void *const found[HEAD_STATISTICS] = {
      [HEAD_SUM] = scratch->sum, [HEAD_CROSS] = scratch->cross};
  head_tiles_logits(tape, scratch->logits, array_at(tape, student->x_all, block->token * w->cols),
                    w, student->head->b, block->tile, block->count);
  make_rates(tape, student->bent, block, scratch->rates);
  for (struct head_tile chunk = head_tiles_first_chunk(block->tile); chunk.rows > 0;
       chunk = head_tiles_next(chunk)) {
    const int64_t column = chunk.first - block->tile.first;
    tape->kernels->mean_tile_statistics(
        scratch->maximum, scratch->sum, scratch->cross, array_sum_at(tape, scratch->logits, column),
        array_sum_at(tape, scratch->rates, column), block->count, chunk.rows, block->tile.rows);
    head_statistics_add(tape, statistics, slice, block->token, block->count, scratch->maximum,
                        found);
  }
}

static void read_slices(struct tape *tape, const struct student *student,
                        struct head_statistics *statistics) {
  const struct head_tokens *tokens = student->bent->tokens;
  for (int64_t slice = 0; slice < statistics->slices; slice++) {
    struct head_block block = {.tile = head_tiles_first(tokens, slice)};
    for (; block.tile.rows > 0; block.tile = head_tiles_next(block.tile))
      for (block.token = 0; block.token < tokens->total; block.token += block.count) {
        block.count = head_tokens_block(tokens, block.token, tokens->total);
        add_block(tape, student, statistics, slice, &block);
      }
  }
}

static void find_means(struct tape *tape, const struct head_bent *bent, const struct head *head,
                       const void *x_all) {
  struct head_statistics statistics;
  const size_t mark = arena_mark(tape->arena);
  const struct student student = {bent, head, x_all, take_scratch(tape, bent->tokens)};
  head_statistics_open(tape, &statistics, bent->tokens, 1u << HEAD_SUM | 1u << HEAD_CROSS);
  read_slices(tape, &student, &statistics);
  head_statistics_combine(tape, &statistics, bent->tokens->vocab);
  double *cross = statistics.kinds[HEAD_CROSS];
  for (int64_t i = 0; cross && i < bent->tokens->total; i++)
    cross[i] /= statistics.kinds[HEAD_SUM][i];
  array_put_sums(tape, bent->mean, cross, bent->tokens->total);
  arena_reset(tape->arena, mark);
}

void head_bend_open(struct tape *tape, struct head_bent *bent, const struct head_bend *bend,
                    const struct head_tokens *tokens, const struct head *head, const void *x_all) {
  *bent = (struct head_bent){.tokens = tokens, .w = head->w};
  bent->rate = head_tokens_gather_rows(tape, tokens, bend->rate);
  bent->mean = array_sums(tape, tokens->room);
  bent->a = array_sums(tape, tokens->room);
  bent->b = array_sums(tape, tokens->room);
  head_tokens_gather_sums(tape, tokens, bent->a, bend->a);
  head_tokens_gather_sums(tape, tokens, bent->b, bend->b);
  find_means(tape, bent, head, x_all);
}

/* A teacher's logits as the pass that finds their log-sum-exps makes them. */
struct change {
  const struct head_bent *bent;
  void *rates; /* scratch */
};

static void apply_change(struct tape *tape, const void *context, void *logits, int64_t first,
                         int64_t count, struct head_tile tile) {
  const struct change *change = context;
  const struct head_block block = {.tile = tile, .token = first, .count = count};
  head_bend_block(tape, change->bent, &block, logits, change->rates);
}

void head_bend_lse(struct tape *tape, const struct head_bent *bent, void *lse, const void *states,
                   const struct param *w) {
  struct head_statistics statistics;
  const size_t mark = arena_mark(tape->arena);
  const struct change change = {bent, array_sums(tape, head_tokens_tile_count(bent->tokens))};
  const struct head_change applied = {apply_change, &change};
  head_statistics_open(tape, &statistics, bent->tokens, 1u << HEAD_SUM);
  statistics.change = &applied;
  head_statistics_pass(tape, &statistics, bent->tokens, states, w, NULL, NULL);
  head_statistics_lses(tape, &statistics, lse, bent->tokens->total);
  arena_reset(tape->arena, mark);
}
