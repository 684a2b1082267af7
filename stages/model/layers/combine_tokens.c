#include <assert.h>

#include "stages/model/layers/combine.h"
#include "stages/model/tape/array.h"
#include "stages/model/tape/tangent.h"

struct tokens_record {
  struct record record;
  struct param *tokens;
  void *factors; /* [batch] sums, or NULL for 1 */
  struct value *x, *y;
  int64_t batch;
};

/* dtokens[p] += the sum over the batch of factor * dy. */
static void tokens_gradient(struct tape *tape, const struct tokens_record *kept) {
  const int64_t P = kept->tokens->rows, c = kept->tokens->cols;
  for (int64_t p = 0; p < P; p++)
    tape->kernels->sum_rows(array_sum_at(tape, kept->tokens->gradient, p * c),
                            array_at(tape, kept->y->gradient, p * c), kept->factors, kept->batch, c,
                            P * c);
}

/* dx[b] = the sum over its tokens of dy. */
static void addend_gradient(struct tape *tape, const struct tokens_record *kept) {
  const int64_t P = kept->tokens->rows, c = kept->tokens->cols;
  struct value *x = kept->x;
  bool add;
  void *dx = tape_gradient(tape, x, &add);
  const size_t mark = arena_mark(tape->arena);
  for (int64_t b = 0; b < kept->batch; b++) {
    arena_reset(tape->arena, mark);
    void *sums = array_sums_zeroed(tape, c);
    tape->kernels->sum_rows(sums, array_at(tape, kept->y->gradient, b * P * c), NULL, P, c, c);
    tape->kernels->convert_from_sum(array_at(tape, dx, b * x->stride), sums, c, add);
  }
  arena_reset(tape->arena, mark);
}

static void tokens_backward(struct tape *tape, const struct record *record) {
  const struct tokens_record *kept = (const struct tokens_record *)record;
  if (!kept->y->reached) return;
  if (kept->tokens->gradient) tokens_gradient(tape, kept);
  if (kept->x && kept->x->needs_gradient) addend_gradient(tape, kept);
}

/* The learned rows stay; what is added to them may move. */
static void tokens_jvp(struct tape *tape, const struct record *record) {
  const struct tokens_record *kept = (const struct tokens_record *)record;
  const int64_t P = kept->tokens->rows, c = kept->tokens->cols;
  if (!kept->x || !tangent_moves(kept->x)) return;
  void *ty = tangent_open(tape, kept->y);
  const void *tx = tangent_of(tape, kept->x);
  for (int64_t b = 0; b < kept->batch; b++)
    tape->kernels->copy_rows(array_at(tape, ty, b * P * c), array_at(tape, tx, b * kept->x->stride),
                             P, c, c, 0, false);
}

static const struct record_kind tokens_kind = {"tokens", tokens_backward, tokens_jvp};

static void fill(struct tape *tape, const struct tokens_record *made, const float *factor) {
  const int64_t P = made->tokens->rows, c = made->tokens->cols;
  const struct value *x = made->x;
  for (int64_t b = 0; b < made->batch; b++) {
    void *rows = array_at(tape, made->y->data, b * P * c);
    tape->kernels->scale(rows, made->tokens->data, factor ? (double)factor[b] : 1, P * c, false);
    if (x) tape->kernels->copy_rows(rows, array_at(tape, x->data, b * x->stride), P, c, c, 0, true);
  }
}

struct value *combine_tokens(struct tape *tape, struct param *tokens, const float *factor,
                             struct value *x, int64_t batch) {
  assert(!x || (x->rows == batch && x->cols == tokens->cols));
  struct tokens_record described = {.tokens = tokens, .x = x, .batch = batch};
  described.y = tape_value(tape, batch * tokens->rows, tokens->cols);
  if (factor) {
    described.factors = array_sums(tape, batch);
    array_put_float_sums(tape, described.factors, factor, batch);
  }
  fill(tape, &described, factor);
  struct tokens_record *kept =
      tape_record(tape, &tokens_kind, sizeof(*kept), (struct param *const[]){tokens}, 1);
  if (!kept) return described.y;
  described.record = kept->record;
  *kept = described;
  return kept->y;
}
