#include "stages/model/layers/head_noise.h"

#include "stages/model/layers/head_statistics.h"
#include "stages/model/layers/head_tiles.h"
#include "stages/model/tape/array.h"

/* The draws and targets of all tokens, and scratch of a block of tokens times a tile. */
struct noisy {
  const struct head *head;
  const struct head_noise *noise;
  const struct head_tokens *tokens;
  const void *x_all; /* [N, c] */
  struct head_draws draws;
  int32_t *targets;                      /* [N] */
  void *logits, *maximum, *sum, *unread; /* of a block */
  float *normals;                        /* [tile] */
  double *row;                           /* [tile] */
};

static void open(struct tape *tape, struct noisy *noisy, struct value *x) {
  const struct head_tokens *tokens = noisy->tokens;
  noisy->x_all = head_tokens_gather_rows(tape, tokens, x);
  noisy->draws = head_tokens_gather_draws(tape, tokens, noisy->noise->streams,
                                          noisy->noise->positions);
  noisy->targets = tape_save(tape, (size_t)tokens->room * sizeof(int32_t));
  head_tokens_gather(tape, tokens, noisy->targets, noisy->head->targets, sizeof(int32_t));
  noisy->logits = array_sums(tape, HEAD_BLOCK_TOKENS * HEAD_TILE_ROWS);
  noisy->maximum = array_sums(tape, HEAD_BLOCK_TOKENS);
  noisy->sum = array_sums(tape, HEAD_BLOCK_TOKENS);
  noisy->unread = array_sums(tape, HEAD_BLOCK_TOKENS);
  noisy->normals = tape_save(tape, HEAD_TILE_ROWS * sizeof(float));
  noisy->row = tape_save(tape, HEAD_TILE_ROWS * sizeof(double));
}

/* Adds the noise and the target's advantage to the logits of token `i` in a tile. */
static void disturb(struct tape *tape, const struct noisy *noisy, void *logits, int64_t i,
                    struct head_tile tile) {
  const int64_t target = noisy->targets[i] - tile.first;
  random_fill_normal(noisy->normals, tile.rows, noisy->draws.streams[i],
                     (uint64_t)(noisy->draws.positions[i] + tile.first));
  array_get_sums(tape, noisy->row, logits, tile.rows);
  for (int64_t v = 0; v < tile.rows; v++)
    noisy->row[v] += noisy->noise->scale * (double)noisy->normals[v];
  if (target >= 0 && target < tile.rows) noisy->row[target] += noisy->noise->advantage;
  array_put_sums(tape, logits, noisy->row, tile.rows);
}

static void read_block(struct tape *tape, const struct noisy *noisy, struct head_tile tile,
                       int64_t first, int64_t count) {
  static const int32_t none[HEAD_BLOCK_TOKENS];
  const struct head *head = noisy->head;
  head_tiles_logits(tape, noisy->logits, array_at(tape, noisy->x_all, first * head->w->cols),
                    head->w, head->b, tile, count);
  for (int64_t i = 0; noisy->targets && i < count; i++)
    disturb(tape, noisy, array_sum_at(tape, noisy->logits, i * tile.rows), first + i, tile);
  tape->kernels->softmax_tile_statistics(noisy->maximum, noisy->sum, noisy->unread, noisy->unread,
                                         noisy->logits, none, count, tile.rows, tile.first);
}

static void read_slice(struct tape *tape, const struct noisy *noisy,
                       struct head_statistics *statistics, int64_t slice) {
  const void *found[HEAD_STATISTICS] = {[HEAD_SUM] = noisy->sum};
  const struct head_tokens *tokens = noisy->tokens;
  for (struct head_tile tile = head_tiles_first(tokens->vocab, slice); tile.rows > 0;
       tile = head_tiles_next(tile))
    for (int64_t i = 0, count; i < tokens->total; i += count) {
      count = head_tokens_block(i, tokens->total);
      read_block(tape, noisy, tile, i, count);
      head_statistics_add(tape, statistics, slice, i, count, noisy->maximum, found);
    }
}

/* Gives each member its own values. */
static void finish(struct tape *tape, const struct noisy *noisy, struct head_statistics *statistics,
                   double *values) {
  double *sum = statistics->kinds[HEAD_SUM];
  for (int64_t i = 0; sum && i < noisy->tokens->total; i++) {
    float own;
    const uint64_t place = (uint64_t)(noisy->draws.positions[i] + noisy->targets[i]);
    random_fill_normal(&own, 1, noisy->draws.streams[i], place);
    sum[i] = head_statistics_lse(statistics, i) - noisy->noise->scale * (double)own;
  }
  head_tokens_own(tape, noisy->tokens, values, sum, 0);
}

void head_noise_log_sum_exp(struct tape *tape, double *values, struct value *x,
                            const struct head *head, const struct head_noise *noise) {
  const size_t mark = arena_mark(tape->arena);
  struct head_tokens tokens;
  struct head_statistics statistics;
  head_tiles_check(head->vocab, head->w, head->b, x->cols);
  head_tokens_open(tape, &tokens, head->vocab, x->rows, NULL, NULL);
  struct noisy noisy = {.head = head, .noise = noise, .tokens = &tokens};
  open(tape, &noisy, x);
  head_statistics_open(tape, &statistics, &tokens, 1u << HEAD_SUM);
  for (int64_t slice = 0; slice < statistics.slices; slice++)
    read_slice(tape, &noisy, &statistics, slice);
  head_statistics_combine(tape, &statistics, head->vocab);
  finish(tape, &noisy, &statistics, values);
  arena_reset(tape->arena, mark);
}
