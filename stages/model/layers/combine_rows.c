/* Joins, cuts and picks of rows: each is a list of runs of rows. */
#include <assert.h>

#include "stages/model/layers/combine.h"
#include "stages/model/tape/array.h"

/* Rows [from, from + count) of x are rows [to, to + count) of y, and again at these distances. */
struct run {
  int64_t to, from, count;
};

static void copy_run(struct tape *tape, struct value *y, const struct value *x, struct run run) {
  tape->kernels->copy_rows(array_at(tape, y->data, run.to * y->stride),
                           array_at(tape, x->data, run.from * x->stride), run.count, x->cols,
                           y->stride, x->stride, false);
}

static void add_run(struct tape *tape, void *dx, const struct value *x, const struct value *y,
                    struct run run) {
  tape->kernels->copy_rows(array_at(tape, dx, run.from * x->stride),
                           array_at(tape, y->gradient, run.to * y->stride), run.count, x->cols,
                           x->stride, y->stride, true);
}

/* The gradient of x for adding to some of its rows: the others must be zero. */
static void *open_rows(struct tape *tape, struct value *x) {
  bool add;
  void *dx = tape_gradient(tape, x, &add);
  if (!add) tape->kernels->fill_zero(dx, x->rows * x->stride);
  return dx;
}

struct rows_record {
  struct record record;
  struct value *a, *b, *y;
  int64_t batch, first;
  const int64_t *index;
};

static struct value *leave(struct tape *tape, const struct record_kind *kind,
                           const struct rows_record *described) {
  struct rows_record *kept = tape_record(tape, kind, sizeof(*kept), NULL, 0);
  if (!kept) return described->y;
  const struct record head = kept->record;
  *kept = *described;
  kept->record = head;
  return kept->y;
}

/* Where sequence `i` of a part of `own` rows a sequence lies in joined sequences of `all` rows. */
static struct run joined(int64_t i, int64_t own, int64_t all, int64_t offset) {
  return (struct run){i * all + offset, i * own, own};
}

static void join(struct tape *tape, struct value *y, const struct value *x, int64_t batch,
                 int64_t offset) {
  for (int64_t i = 0; i < batch; i++)
    copy_run(tape, y, x, joined(i, x->rows / batch, y->rows / batch, offset));
}

static void join_backward(struct tape *tape, struct value *x, const struct value *y, int64_t batch,
                          int64_t offset) {
  if (!x->needs_gradient) return;
  void *dx = open_rows(tape, x);
  for (int64_t i = 0; i < batch; i++)
    add_run(tape, dx, x, y, joined(i, x->rows / batch, y->rows / batch, offset));
}

static void rows_backward(struct tape *tape, const struct record *record) {
  const struct rows_record *kept = (const struct rows_record *)record;
  if (!kept->y->reached) return;
  join_backward(tape, kept->a, kept->y, kept->batch, 0);
  join_backward(tape, kept->b, kept->y, kept->batch, kept->a->rows / kept->batch);
}

static const struct record_kind rows_kind = {"rows", rows_backward, NULL};

struct value *combine_rows(struct tape *tape, struct value *a, struct value *b, int64_t batch) {
  assert(a->cols == b->cols && a->rows % batch == 0 && b->rows % batch == 0);
  struct value *y = tape_value(tape, a->rows + b->rows, a->cols);
  join(tape, y, a, batch, 0);
  join(tape, y, b, batch, a->rows / batch);
  return leave(tape, &rows_kind, &(struct rows_record){.a = a, .b = b, .y = y, .batch = batch});
}

/* Sequence `i` of a cut. */
static struct run cut(const struct rows_record *kept, int64_t i) {
  const int64_t count = kept->y->rows / kept->batch;
  return (struct run){i * count, i * (kept->a->rows / kept->batch) + kept->first, count};
}

static void cut_rows_backward(struct tape *tape, const struct record *record) {
  const struct rows_record *kept = (const struct rows_record *)record;
  if (!kept->y->reached || !kept->a->needs_gradient) return;
  void *dx = open_rows(tape, kept->a);
  for (int64_t i = 0; i < kept->batch; i++) add_run(tape, dx, kept->a, kept->y, cut(kept, i));
}

static const struct record_kind cut_rows_kind = {"cut_rows", cut_rows_backward, NULL};

struct value *combine_cut_rows(struct tape *tape, struct value *x, int64_t batch, int64_t first,
                               int64_t count) {
  assert(x->rows % batch == 0 && first >= 0 && first + count <= x->rows / batch);
  struct value *y = tape_value(tape, batch * count, x->cols);
  const struct rows_record described = {.a = x, .y = y, .batch = batch, .first = first};
  for (int64_t i = 0; i < batch; i++) copy_run(tape, y, x, cut(&described, i));
  return leave(tape, &cut_rows_kind, &described);
}

static void pick_rows_backward(struct tape *tape, const struct record *record) {
  const struct rows_record *kept = (const struct rows_record *)record;
  if (!kept->y->reached || !kept->a->needs_gradient) return;
  void *dx = open_rows(tape, kept->a);
  for (int64_t i = 0; kept->index && i < kept->y->rows; i++)
    add_run(tape, dx, kept->a, kept->y, (struct run){i, kept->index[i], 1});
}

static const struct record_kind pick_rows_kind = {"pick_rows", pick_rows_backward, NULL};

struct value *combine_pick_rows(struct tape *tape, struct value *x, const int64_t *index,
                                int64_t count) {
  struct value *y = tape_value(tape, count, x->cols);
  for (int64_t i = 0; index && i < count; i++) {
    assert(index[i] >= 0 && index[i] < x->rows);
    copy_run(tape, y, x, (struct run){i, index[i], 1});
  }
  return leave(tape, &pick_rows_kind, &(struct rows_record){.a = x, .y = y, .index = index});
}
