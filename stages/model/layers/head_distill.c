#include "stages/model/layers/head_distill.h"

#include <math.h>

#include "stages/model/layers/head_backward.h"
#include "stages/model/layers/head_statistics.h"
#include "stages/model/tape/array.h"

/* Kinds of HEAD_PLAIN: */
enum { ENTROPY = HEAD_PLAIN, LINEAR, AGREEMENT };

/* Hidden states of all tokens, and per token what is known of them (sums). */
struct states {
  void *student, *first, *second; /* [N, c] */
  void *lse, *first_lse, *second_lse, *omega;
};

struct distill_record {
  struct record record;
  struct head head;
  struct param *teacher;
  struct head_tokens tokens;
  struct value *x;
  struct states states;
};

/* Three tiles of logits. */
struct logits {
  void *student, *first, *second;
};

static struct logits take_logits(struct tape *tape) {
  const int64_t count = HEAD_BLOCK_TOKENS * HEAD_TILE_ROWS;
  struct logits logits;
  logits.student = array_sums(tape, count);
  logits.first = array_sums(tape, count);
  logits.second = array_sums(tape, count);
  return logits;
}

/* Makes the logits of a block and says where the kernels find what they read. */
static struct distill_tile fill(struct tape *tape, const struct distill_record *kept,
                                const struct logits *logits, const struct head_block *block) {
  const struct states *states = &kept->states;
  const int64_t row = block->token * kept->head.w->cols, first = block->token;
  const int64_t teacher_row = block->token * kept->teacher->cols;
  head_tiles_logits(tape, logits->student, array_at(tape, states->student, row), kept->head.w,
                    kept->head.b, block->tile, block->count);
  head_tiles_logits(tape, logits->first, array_at(tape, states->first, teacher_row), kept->teacher,
                    NULL, block->tile, block->count);
  head_tiles_logits(tape, logits->second, array_at(tape, states->second, teacher_row),
                    kept->teacher, NULL, block->tile, block->count);
  return (struct distill_tile){logits->student,
                               logits->first,
                               logits->second,
                               array_sum_at(tape, states->first_lse, first),
                               array_sum_at(tape, states->second_lse, first),
                               array_sum_at(tape, states->omega, first)};
}

struct slope {
  const struct distill_record *kept;
  struct logits logits;
  void *weight;
};

static void divergence_slope(struct tape *tape, const void *context, const struct head_block *block,
                             void *dlogits) {
  const struct slope *slope = context;
  const struct distill_tile tile = fill(tape, slope->kept, &slope->logits, block);
  tape->kernels->distill_tile_gradient(
      dlogits, array_sum_at(tape, slope->kept->states.lse, block->token),
      array_sum_at(tape, slope->weight, block->token), &tile, block->count, block->tile.rows);
}

static void distill_backward(struct tape *tape, const struct record *record) {
  const struct distill_record *kept = (const struct distill_record *)record;
  struct slope slope = {.kept = kept};
  if (!kept->head.weight && !arena_is_measuring(tape->arena)) return;
  head_tokens_open_gradient(tape, kept->x);
  const size_t mark = arena_mark(tape->arena);
  slope.weight = array_sums(tape, kept->tokens.room);
  head_tokens_gather_sums(tape, &kept->tokens, slope.weight, kept->head.weight);
  slope.logits = take_logits(tape);
  head_backward_pass(tape, &(struct head_backward){.tokens = &kept->tokens,
                                                   .x = kept->x,
                                                   .x_all = kept->states.student,
                                                   .w = kept->head.w,
                                                   .b = kept->head.b,
                                                   .slope = divergence_slope,
                                                   .context = &slope});
  arena_reset(tape->arena, mark);
}

static const struct record_kind distill_kind = {"head_distill", distill_backward, NULL};

/* omega[N] in the sum type, from doubles of this member. */
static void gather_omega(struct tape *tape, const struct head_tokens *tokens, void *sums,
                         const double *omega) {
  const size_t mark = arena_mark(tape->arena);
  double *all = tape_save(tape, (size_t)tokens->room * sizeof(*all));
  head_tokens_gather(tape, tokens, all, omega, sizeof(*all));
  array_put_sums(tape, sums, all, tokens->total);
  arena_reset(tape->arena, mark);
}

static void find_lse(struct tape *tape, const struct distill_record *made, void *lse,
                     const void *states) {
  const size_t mark = arena_mark(tape->arena);
  struct head_statistics statistics;
  head_statistics_open(tape, &statistics, &made->tokens, 1u << HEAD_SUM);
  head_statistics_pass(tape, &statistics, &made->tokens, states, made->teacher, NULL, NULL);
  head_statistics_lses(tape, &statistics, lse, made->tokens.total);
  arena_reset(tape->arena, mark);
}

static void open_record(struct tape *tape, struct distill_record *made, struct value *x,
                        const struct head *head, const struct head_teacher *teacher) {
  *made = (struct distill_record){.head = *head, .x = x, .teacher = teacher->w};
  struct states *states = &made->states;
  struct head_tokens *tokens = &made->tokens;
  head_tiles_check(head->vocab, head->w, head->b, x->cols);
  head_tiles_check(head->vocab, teacher->w, NULL, teacher->first->cols);
  head_tokens_open(tape, tokens, head->vocab, x->rows, head->weight, NULL);
  states->student = head_tokens_gather_rows(tape, tokens, x);
  states->first = head_tokens_gather_rows(tape, tokens, teacher->first);
  states->second = head_tokens_gather_rows(tape, tokens, teacher->second);
  states->lse = array_sums(tape, tokens->room);
  states->first_lse = array_sums(tape, tokens->room);
  states->second_lse = array_sums(tape, tokens->room);
  states->omega = array_sums(tape, tokens->room);
  gather_omega(tape, tokens, states->omega, teacher->omega);
  find_lse(tape, made, states->first_lse, states->first);
  find_lse(tape, made, states->second_lse, states->second);
}

struct scratch {
  struct logits logits;
  void *maximum;
  void *found[HEAD_STATISTICS];
};

static void take_scratch(struct tape *tape, struct scratch *scratch) {
  scratch->logits = take_logits(tape);
  scratch->maximum = array_sums(tape, HEAD_BLOCK_TOKENS);
  for (int i = 0; i < HEAD_STATISTICS; i++) scratch->found[i] = array_sums(tape, HEAD_BLOCK_TOKENS);
}

static void add_block(struct tape *tape, const struct distill_record *made,
                      const struct scratch *scratch, struct head_statistics *statistics,
                      int64_t slice, const struct head_block *block) {
  void *const *found = scratch->found;
  const struct distill_tile tile = fill(tape, made, &scratch->logits, block);
  const struct distill_statistics place = {scratch->maximum,  found[HEAD_SUM], found[HEAD_SQUARE],
                                           found[HEAD_CROSS], found[ENTROPY],  found[LINEAR],
                                           found[AGREEMENT]};
  tape->kernels->distill_tile_statistics(&place, &tile, block->count, block->tile.rows);
  head_statistics_add(tape, statistics, slice, block->token, block->count, scratch->maximum,
                      (const void *const *)found);
}

static void compare(struct tape *tape, const struct distill_record *made,
                    struct head_statistics *statistics) {
  const struct head_tokens *tokens = &made->tokens;
  struct scratch scratch;
  const size_t mark = arena_mark(tape->arena);
  take_scratch(tape, &scratch);
  for (int64_t slice = 0; slice < statistics->slices; slice++) {
    struct head_block block = {.tile = head_tiles_first(tokens->vocab, slice)};
    for (; block.tile.rows > 0; block.tile = head_tiles_next(block.tile))
      for (block.token = 0; block.token < tokens->total; block.token += block.count) {
        block.count = head_tokens_block(block.token, tokens->total);
        add_block(tape, made, &scratch, statistics, slice, &block);
      }
  }
  arena_reset(tape->arena, mark);
  head_statistics_combine(tape, statistics, tokens->vocab);
}

static void write_results(const struct tape *tape, const struct distill_record *made,
                          struct head_statistics *statistics, struct head_distill_result *result) {
  double *const *kinds = statistics->kinds;
  for (int64_t i = 0; kinds[HEAD_SUM] && i < made->tokens.total; i++) {
    const double sum = kinds[HEAD_SUM][i], lse = head_statistics_lse(statistics, i);
    const double student = kinds[HEAD_SQUARE][i] / (sum * sum), cross = kinds[HEAD_CROSS][i] / sum;
    kinds[ENTROPY][i] += lse - kinds[LINEAR][i];
    kinds[AGREEMENT][i] += student - 2 * cross;
  }
  head_tokens_own(tape, &made->tokens, result->loss, kinds[ENTROPY], 0);
  head_tokens_own(tape, &made->tokens, result->distance, kinds[AGREEMENT], 0);
}

void head_distill_forward(struct tape *tape, struct head_distill_result *result, struct value *x,
                          const struct head *head, const struct head_teacher *teacher) {
  struct distill_record made;
  struct head_statistics statistics;
  const size_t begin = arena_mark(tape->arena);
  open_record(tape, &made, x, head, teacher);
  const size_t mark = arena_mark(tape->arena);
  head_statistics_open(tape, &statistics, &made.tokens, (1u << HEAD_STATISTICS) - 1);
  compare(tape, &made, &statistics);
  head_statistics_lses(tape, &statistics, made.states.lse, made.tokens.total);
  write_results(tape, &made, &statistics, result);
  arena_reset(tape->arena, mark);
  struct param *const params[] = {head->w, head->b};
  struct distill_record *kept = tape_record(tape, &distill_kind, sizeof(*kept), params, 2);
  if (!kept) {
    arena_reset(tape->arena, begin);
    return;
  }
  made.record = kept->record;
  *kept = made;
}
