#include "stages/model/layers/head_noise.h"

#include "stages/model/layers/head_statistics.h"
#include "stages/model/layers/head_tiles.h"
#include "stages/model/tape/array.h"

/* The draws and targets of all tokens. */
struct noisy {
  const struct head_noise *noise;
  struct head_draws draws;
  const int32_t *targets; /* [N] */
  float *normals;         /* [tile] */
  double *row;            /* [tile] */
};

/* Adds the noise and the target's advantage to the logits of token `i`. */
static void disturb_token(struct tape *tape, const struct noisy *noisy, void *logits, int64_t i,
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

static void disturb(struct tape *tape, const void *context, void *logits, int64_t first,
                    int64_t count, struct head_tile tile) {
  for (int64_t i = 0; i < count; i++)
    disturb_token(tape, context, array_sum_at(tape, logits, i * tile.rows), first + i, tile);
}

static void open_noisy(struct tape *tape, struct noisy *noisy, const struct head_tokens *tokens,
                       const struct head *head, const struct head_noise *noise) {
  int32_t *targets = tape_save(tape, (size_t)tokens->room * sizeof *targets);
  head_tokens_gather(tape, tokens, targets, head->targets, sizeof *targets);
  *noisy = (struct noisy){
      .noise = noise,
      .draws = head_tokens_gather_draws(tape, tokens, noise->streams, noise->positions),
      .targets = targets,
      .normals = tape_save(tape, (size_t)tokens->tiling.rows * sizeof(float)),
      .row = tape_save(tape, (size_t)tokens->tiling.rows * sizeof(double))};
}

/* Gives each member its own values. */
static void finish(struct tape *tape, const struct noisy *noisy, const struct head_tokens *tokens,
                   struct head_statistics *statistics, double *values) {
  double *sum = statistics->kinds[HEAD_SUM];
  for (int64_t i = 0; sum && i < tokens->total; i++) {
    float own;
    const uint64_t place = (uint64_t)(noisy->draws.positions[i] + noisy->targets[i]);
    random_fill_normal(&own, 1, noisy->draws.streams[i], place);
    sum[i] = head_statistics_lse(statistics, i) - noisy->noise->scale * (double)own;
  }
  head_tokens_own(tape, tokens, values, sum, 0);
}

void head_noise_log_sum_exp(struct tape *tape, double *values, struct value *x,
                            const struct head *head, const struct head_noise *noise) {
  const size_t mark = arena_mark(tape->arena);
  struct head_tokens tokens;
  struct head_statistics statistics;
  struct noisy noisy;
  const struct head_change change = {disturb, &noisy};
  head_tiles_check(head->vocab, head->w, head->b, x->cols);
  head_tokens_open(tape, &tokens, head->vocab, head->tiling, x->rows, NULL, NULL);
  const void *x_all = head_tokens_gather_rows(tape, &tokens, x);
  open_noisy(tape, &noisy, &tokens, head, noise);
  head_statistics_open(tape, &statistics, &tokens, 1u << HEAD_SUM);
  statistics.change = &change;
  head_statistics_pass(tape, &statistics, &tokens, x_all, head->w, head->b, NULL);
  finish(tape, &noisy, &tokens, &statistics, values);
  arena_reset(tape->arena, mark);
}
