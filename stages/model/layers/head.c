#include "stages/model/layers/head.h"

#include <math.h>

#include "stages/model/layers/head_backward.h"
#include "stages/model/layers/head_best.h"
#include "stages/model/layers/head_statistics.h"
#include "stages/model/tape/array.h"

/* The kind that holds the sum of logits, with label smoothing. */
enum { MEAN = HEAD_PLAIN + 1 };

struct head_record {
  struct record record;
  struct head head;
  struct head_tokens tokens;
  struct value *x;
  void *x_all;      /* [N, c] */
  int32_t *targets; /* [N] */
  void *lse;        /* [N] sums */
};

/* What the slope of a block needs. */
struct slope {
  const struct head_record *kept;
  void *logits, *weight;
  void *pull; /* [N] 1 + 2 penalty log-sum-exp, or NULL without a penalty */
};

static void cross_entropy_slope(struct tape *tape, const void *context,
                                const struct head_block *block, void *dlogits) {
  const struct slope *slope = context;
  const struct head_record *kept = slope->kept;
  const void *x = array_at(tape, kept->x_all, block->token * kept->head.w->cols);
  head_tiles_logits(tape, slope->logits, x, kept->head.w, kept->head.b, block->tile, block->count);
  const double smoothing = kept->head.smoothing;
  const struct softmax_target target = {kept->targets ? kept->targets + block->token : NULL,
                                        1 - smoothing, smoothing / (double)kept->head.vocab->size};
  tape->kernels->softmax_tile_gradient(dlogits, slope->logits,
                                       array_sum_at(tape, kept->lse, block->token),
                                       array_sum_at(tape, slope->pull, block->token),
                                       array_sum_at(tape, slope->weight, block->token), &target,
                                       block->count, block->tile.rows, block->tile.first);
}

/* The derivative of log-sum-exp + penalty * log-sum-exp^2 by the log-sum-exp. */
static void *make_pull(struct tape *tape, const struct head_record *kept) {
  const double penalty = kept->head.log_sum_exp_penalty;
  if (penalty == 0) return NULL;
  void *pull = array_sums(tape, kept->tokens.room);
  for (int64_t i = 0; pull && i < kept->tokens.total; i++) {
    double value = 0;
    array_get_sums(tape, &value, array_sum_at(tape, kept->lse, i), 1);
    value = 1 + 2 * penalty * value;
    array_put_sums(tape, array_sum_at(tape, pull, i), &value, 1);
  }
  return pull;
}

static void head_backward(struct tape *tape, const struct record *record) {
  const struct head_record *kept = (const struct head_record *)record;
  struct slope slope = {.kept = kept};
  if (!kept->head.weight && !arena_is_measuring(tape->arena)) return;
  head_tokens_open_gradient(tape, kept->x);
  const size_t mark = arena_mark(tape->arena);
  slope.weight = array_sums(tape, kept->tokens.room);
  head_tokens_gather_sums(tape, &kept->tokens, slope.weight, kept->head.weight);
  slope.pull = make_pull(tape, kept);
  slope.logits = array_sums(tape, head_tokens_tile_count(&kept->tokens));
  head_backward_pass(tape, &(struct head_backward){.tokens = &kept->tokens,
                                                   .x = kept->x,
                                                   .x_all = kept->x_all,
                                                   .w = kept->head.w,
                                                   .b = kept->head.b,
                                                   .slope = cross_entropy_slope,
                                                   .context = &slope});
  arena_reset(tape->arena, mark);
}

static const struct record_kind head_kind = {"head", head_backward, NULL};

/* Turns the statistics of token i into results, in place. */
static void finish(const struct head_record *made, const struct head_statistics *statistics,
                   int64_t i) {
  double *sum = statistics->kinds[HEAD_SUM] + i, *logit = statistics->kinds[HEAD_PLAIN] + i;
  const double lse = head_statistics_lse(statistics, i), wanted = made->targets[i] >= 0 ? 1 : 0;
  statistics->kinds[HEAD_SQUARE][i] /= *sum * *sum;
  *sum = lse;
  if (made->head.smoothing > 0) {
    double *total = statistics->kinds[MEAN] + i;
    *total = wanted * made->head.smoothing * (*logit - *total / (double)made->head.vocab->size);
  }
  *logit = wanted > 0 ? lse - *logit : 0;
  statistics->maximum[i] = wanted * made->head.log_sum_exp_penalty * lse * lse;
}

/* The results of this member's tokens from statistics of all. */
static void write_results(const struct tape *tape, const struct head_record *made,
                          const struct head_statistics *statistics, struct head_result *result) {
  const struct head_tokens *tokens = &made->tokens;
  double *const *kinds = statistics->kinds;
  head_tokens_own(tape, tokens, result->target_logit, kinds[HEAD_PLAIN], 0);
  for (int64_t i = 0; kinds[HEAD_SUM] && i < tokens->total; i++) finish(made, statistics, i);
  head_tokens_own(tape, tokens, result->square_sum, kinds[HEAD_SQUARE], 0);
  head_tokens_own(tape, tokens, result->log_sum_exp, kinds[HEAD_SUM], 0);
  head_tokens_own(tape, tokens, result->loss, kinds[HEAD_PLAIN], 0);
  head_tokens_own(tape, tokens, result->penalty, statistics->maximum, 0);
  if (made->head.smoothing > 0) head_tokens_own(tape, tokens, result->smoothing, kinds[MEAN], 0);
}

/* Gathers what the head reads; saved for backward when recording. */
static void open_record(struct tape *tape, struct head_record *made, struct value *x,
                        const struct head *head) {
  *made = (struct head_record){.head = *head, .x = x};
  head_tiles_check(head->vocab, head->w, head->b, x->cols);
  head_tokens_open(tape, &made->tokens, head->vocab, head->tiling, x->rows, head->weight,
                   head->targets);
  made->x_all = head_tokens_gather_rows(tape, &made->tokens, x);
  made->targets = tape_save(tape, (size_t)made->tokens.room * sizeof(*made->targets));
  if (head->targets)
    head_tokens_gather(tape, &made->tokens, made->targets, head->targets, sizeof(int32_t));
  for (int64_t i = 0; made->targets && !head->targets && i < made->tokens.total; i++)
    made->targets[i] = -1;
  made->lse = array_sums(tape, made->tokens.room);
}

static void run(struct tape *tape, struct head_record *made, struct head_result *result) {
  const size_t mark = arena_mark(tape->arena);
  struct head_statistics statistics;
  head_statistics_open(tape, &statistics, &made->tokens,
                       1u << HEAD_SUM | 1u << HEAD_SQUARE | 1u << HEAD_PLAIN |
                           (made->head.smoothing > 0 ? 1u << MEAN : 0));
  head_statistics_pass(tape, &statistics, &made->tokens, made->x_all, made->head.w, made->head.b,
                       made->targets);
  head_statistics_lses(tape, &statistics, made->lse, made->tokens.total);
  write_results(tape, made, &statistics, result);
  if (result->argmax) {
    const struct head_best best = {&made->tokens, made->x_all, made->head.w, made->head.b,
                                   .temperature = 1};
    head_best_find(tape, result->argmax, &best);
  }
  arena_reset(tape->arena, mark);
}

void head_forward(struct tape *tape, struct head_result *result, struct value *x,
                  const struct head *head) {
  const size_t mark = arena_mark(tape->arena);
  struct head_record made;
  open_record(tape, &made, x, head);
  run(tape, &made, result);
  struct param *const params[] = {head->w, head->b};
  struct head_record *kept = tape_record(tape, &head_kind, sizeof(*kept), params, 2);
  if (!kept) {
    arena_reset(tape->arena, mark);
    return;
  }
  made.record = kept->record;
  *kept = made;
}
