#include "stages/model/layers/head_distill.h"

#include <assert.h>
#include <math.h>

#include "stages/model/layers/head_backward.h"
#include "stages/model/layers/head_statistics.h"
#include "stages/model/tape/array.h"

/* Kinds of HEAD_PLAIN: */
enum { TEACHER = HEAD_PLAIN, STUDENT, AGREEMENT };

/* Hidden states of all tokens, and per token what is known of them (sums). */
struct states {
  void *student, *first, *second; /* [N, c]; no second with one teacher */
  void *lse, *first_lse, *second_lse, *omega;
  void *level; /* see distill_tile_gradient */
};

struct distill_record {
  struct record record;
  struct head head;
  struct param *teacher;
  enum divergence divergence;
  bool mixes; /* two teachers */
  bool bends;
  struct head_bent bent;
  struct head_tokens tokens;
  struct value *x;
  struct states states;
};

/* Tiles of logits. */
struct logits {
  void *student, *first, *second;
  void *rates; /* where the teacher bends */
};

static struct logits take_logits(struct tape *tape, const struct distill_record *kept) {
  const int64_t count = head_tokens_tile_count(&kept->tokens);
  struct logits logits = {.student = array_sums(tape, count), .first = array_sums(tape, count)};
  if (kept->mixes) logits.second = array_sums(tape, count);
  if (kept->bends) logits.rates = array_sums(tape, count);
  return logits;
}

/* Makes the logits of a block. */
static void fill(struct tape *tape, const struct distill_record *kept, const struct logits *logits,
                 const struct head_block *block) {
  const struct states *states = &kept->states;
  const int64_t row = block->token * kept->head.w->cols;
  const int64_t teacher_row = block->token * kept->teacher->cols;
  head_tiles_logits(tape, logits->student, array_at(tape, states->student, row), kept->head.w,
                    kept->head.b, block->tile, block->count);
  head_tiles_logits(tape, logits->first, array_at(tape, states->first, teacher_row), kept->teacher,
                    NULL, block->tile, block->count);
  if (kept->bends) head_bend_block(tape, &kept->bent, block, logits->first, logits->rates);
  if (kept->mixes)
    head_tiles_logits(tape, logits->second, array_at(tape, states->second, teacher_row),
                      kept->teacher, NULL, block->tile, block->count);
}

/* Where kernels find what is known of a block, from row `row` of its tile on. */
static struct distill_tile tile_at(const struct tape *tape, const struct distill_record *kept,
                                   const struct logits *logits, const struct head_block *block,
                                   int64_t row) {
  const struct states *states = &kept->states;
  return (struct distill_tile){.divergence = kept->divergence,
                               .stride = block->tile.rows,
                               .logits = array_sum_at(tape, logits->student, row),
                               .first = array_sum_at(tape, logits->first, row),
                               .second = array_sum_at(tape, logits->second, row),
                               .lse = array_sum_at(tape, states->lse, block->token),
                               .first_lse = array_sum_at(tape, states->first_lse, block->token),
                               .second_lse = array_sum_at(tape, states->second_lse, block->token),
                               .omega = array_sum_at(tape, states->omega, block->token)};
}

struct slope {
  const struct distill_record *kept;
  struct logits logits;
  void *weight;
};

static void divergence_slope(struct tape *tape, const void *context, const struct head_block *block,
                             void *dlogits) {
  const struct slope *slope = context;
  fill(tape, slope->kept, &slope->logits, block);
  const struct distill_tile tile = tile_at(tape, slope->kept, &slope->logits, block, 0);
  tape->kernels->distill_tile_gradient(
      dlogits, array_sum_at(tape, slope->kept->states.level, block->token),
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
  slope.logits = take_logits(tape, kept);
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

/* A new array of the log-sum-exps of all tokens' logits under a table. */
static void *find_lse(struct tape *tape, const struct distill_record *made, const void *states,
                      const struct param *w, const struct param *b) {
  void *lse = array_sums(tape, made->tokens.room);
  const size_t mark = arena_mark(tape->arena);
  struct head_statistics statistics;
  head_statistics_open(tape, &statistics, &made->tokens, 1u << HEAD_SUM);
  head_statistics_pass(tape, &statistics, &made->tokens, states, w, b, NULL);
  head_statistics_lses(tape, &statistics, lse, made->tokens.total);
  arena_reset(tape->arena, mark);
  return lse;
}

static void open_second(struct tape *tape, struct distill_record *made,
                        const struct head_teacher *teacher) {
  struct states *states = &made->states;
  states->second = head_tokens_gather_rows(tape, &made->tokens, teacher->second);
  states->second_lse = find_lse(tape, made, states->second, teacher->w, NULL);
  states->omega = array_sums(tape, made->tokens.room);
  gather_omega(tape, &made->tokens, states->omega, teacher->omega);
}

static void open_bend(struct tape *tape, struct distill_record *made,
                      const struct head_teacher *teacher) {
  struct states *states = &made->states;
  assert(!made->mixes);
  made->bends = true;
  states->first_lse = array_sums(tape, made->tokens.room);
  head_bend_open(tape, &made->bent, teacher->bend, &made->tokens, &made->head, states->student);
  head_bend_lse(tape, &made->bent, states->first_lse, states->first, teacher->w);
}

static void open_record(struct tape *tape, struct distill_record *made, struct value *x,
                        const struct head *head, const struct head_teacher *teacher) {
  struct states *states = &made->states;
  made->mixes = teacher->second != NULL;
  head_tiles_check(head->vocab, head->w, head->b, x->cols);
  head_tiles_check(head->vocab, teacher->w, NULL, teacher->first->cols);
  head_tokens_open(tape, &made->tokens, head->vocab, head->tiling, x->rows, head->weight, NULL);
  states->student = head_tokens_gather_rows(tape, &made->tokens, x);
  states->first = head_tokens_gather_rows(tape, &made->tokens, teacher->first);
  if (teacher->bend)
    open_bend(tape, made, teacher);
  else
    states->first_lse = find_lse(tape, made, states->first, teacher->w, NULL);
  if (made->mixes) open_second(tape, made, teacher);
  states->lse = made->divergence == DIVERGENCE_JENSEN_SHANNON
                    ? find_lse(tape, made, states->student, head->w, head->b)
                    : array_sums_zeroed(tape, made->tokens.room);
  states->level = array_sums(tape, made->tokens.room);
}

/* Scratch of a block of tokens times a tile. */
struct scratch {
  struct logits logits;
  struct distill_statistics chunk;
};

static void take_scratch(struct tape *tape, const struct distill_record *made,
                         struct scratch *scratch) {
  const int64_t count = made->tokens.tiling.tokens;
  *scratch = (struct scratch){take_logits(tape, made),
                              {.maximum = array_sums(tape, count),
                               .sum = array_sums(tape, count),
                               .square = array_sums(tape, count),
                               .cross = array_sums(tape, count),
                               .relative = array_sums(tape, count),
                               .teacher = array_sums(tape, count),
                               .student = array_sums(tape, count),
                               .agreement = array_sums(tape, count)}};
}

static void add_block(struct tape *tape, const struct distill_record *made,
                      const struct scratch *scratch, struct head_statistics *statistics,
                      int64_t slice, const struct head_block *block) {
  const struct distill_statistics *sums = &scratch->chunk;
  const void *const found[HEAD_STATISTICS] = {
      [HEAD_SUM] = sums->sum,           [HEAD_SQUARE] = sums->square, [HEAD_CROSS] = sums->cross,
      [HEAD_RELATIVE] = sums->relative, [TEACHER] = sums->teacher,    [STUDENT] = sums->student,
      [AGREEMENT] = sums->agreement};
  fill(tape, made, &scratch->logits, block);
  for (struct head_tile chunk = head_tiles_first_chunk(block->tile); chunk.rows > 0;
       chunk = head_tiles_next(chunk)) {
    const struct distill_tile tile =
        tile_at(tape, made, &scratch->logits, block, chunk.first - block->tile.first);
    tape->kernels->distill_tile_statistics(sums, &tile, block->count, chunk.rows);
    head_statistics_add(tape, statistics, slice, block->token, block->count, sums->maximum, found);
  }
}

static void compare(struct tape *tape, const struct distill_record *made,
                    struct head_statistics *statistics) {
  const struct head_tokens *tokens = &made->tokens;
  struct scratch scratch;
  const size_t mark = arena_mark(tape->arena);
  take_scratch(tape, made, &scratch);
  for (int64_t slice = 0; slice < statistics->slices; slice++) {
    struct head_block block = {.tile = head_tiles_first(tokens, slice)};
    for (; block.tile.rows > 0; block.tile = head_tiles_next(block.tile))
      for (block.token = 0; block.token < tokens->total; block.token += block.count) {
        block.count = head_tokens_block(tokens, block.token, tokens->total);
        add_block(tape, made, &scratch, statistics, slice, &block);
      }
  }
  arena_reset(tape->arena, mark);
  head_statistics_combine(tape, statistics, tokens->vocab);
}

/* The divergence of token i; its level takes the place of the student's part. */
static double divergence_of(enum divergence divergence, const struct head_statistics *statistics,
                            int64_t i) {
  double *student = &statistics->kinds[STUDENT][i];
  const double teacher = statistics->kinds[TEACHER][i];
  if (divergence == DIVERGENCE_JENSEN_SHANNON) return (teacher + *student) / 2;
  const double lse = head_statistics_lse(statistics, i);
  if (divergence == DIVERGENCE_FORWARD_KL) return teacher + lse - *student;
  *student = statistics->kinds[HEAD_RELATIVE][i] / statistics->kinds[HEAD_SUM][i] - lse;
  return *student;
}

static void write_results(struct tape *tape, const struct distill_record *made,
                          struct head_statistics *statistics, struct head_distill_result *result) {
  double *const *kinds = statistics->kinds;
  for (int64_t i = 0; kinds[HEAD_SUM] && i < made->tokens.total; i++) {
    const double sum = kinds[HEAD_SUM][i];
    const double student = kinds[HEAD_SQUARE][i] / (sum * sum), cross = kinds[HEAD_CROSS][i] / sum;
    kinds[TEACHER][i] = divergence_of(made->divergence, statistics, i);
    kinds[AGREEMENT][i] += student - 2 * cross;
  }
  array_put_sums(tape, made->states.level, kinds[STUDENT], made->tokens.total);
  head_tokens_own(tape, &made->tokens, result->loss, kinds[TEACHER], 0);
  head_tokens_own(tape, &made->tokens, result->distance, kinds[AGREEMENT], 0);
}

void head_distill_forward(struct tape *tape, struct head_distill_result *result, struct value *x,
                          const struct head *head, const struct head_teacher *teacher,
                          enum divergence divergence) {
  struct distill_record made = {
      .head = *head, .x = x, .teacher = teacher->w, .divergence = divergence};
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
  kept->bent.tokens = &kept->tokens;
}
