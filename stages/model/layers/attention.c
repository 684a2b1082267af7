#include "stages/model/layers/attention.h"

#include <assert.h>
#include <math.h>

#include "stages/model/tape/array.h"
#include "stages/model/tape/tangent.h"

struct attention_record {
  struct record record;
  struct value *q, *k, *v, *bias, *y;
  void *lse, *bias_sums;
  struct attention_shape shape;
};

static int64_t bias_count(const struct attention_shape *shape) {
  return shape->H * (shape->Tq + shape->Tk - 1);
}

static void *wanted(struct tape *tape, struct value *value, bool *add) {
  *add = false;
  return value->needs_gradient ? tape_gradient(tape, value, add) : NULL;
}

static void attention_backward(struct tape *tape, const struct record *record) {
  const struct attention_record *kept = (const struct attention_record *)record;
  const struct attention_shape *shape = &kept->shape;
  if (!kept->y->reached) return;
  bool add_q, add_k, add_v, add_bias = false;
  void *dq = wanted(tape, kept->q, &add_q), *dk = wanted(tape, kept->k, &add_k);
  void *dv = wanted(tape, kept->v, &add_v);
  void *dbias = kept->bias ? wanted(tape, kept->bias, &add_bias) : NULL;
  const bool biased = kept->bias && kept->bias->needs_gradient;
  const size_t mark = arena_mark(tape->arena);
  void *sums = biased ? array_sums_zeroed(tape, bias_count(shape)) : NULL;
  tape->kernels->attention_backward(dq, dk, dv, sums, kept->y->gradient, kept->y->data, kept->lse,
                                    kept->q->data, kept->k->data, kept->v->data, kept->bias_sums,
                                    shape, add_q, add_k, add_v);
  if (biased) tape->kernels->convert_from_sum(dbias, sums, bias_count(shape), add_bias);
  arena_reset(tape->arena, mark);
}

static void attention_jvp(struct tape *tape, const struct record *record) {
  const struct attention_record *kept = (const struct attention_record *)record;
  const struct value *q = kept->q, *k = kept->k, *v = kept->v;
  if (!tangent_moves(q) && !tangent_moves(k) && !tangent_moves(v)) return;
  assert(!kept->bias);
  void *ty = tangent_open(tape, kept->y);
  tape->kernels->attention_jvp(ty, tangent_or_zeros(tape, q), tangent_or_zeros(tape, k),
                               tangent_or_zeros(tape, v), kept->y->data, kept->lse, q->data,
                               k->data, v->data, &kept->shape);
}

static const struct record_kind attention_kind = {"attention", attention_backward, attention_jvp};

static struct attention_shape shape_of(const struct attention *attention, const struct value *q,
                                       const struct value *k, const struct value *v) {
  const double usual = 1 / sqrt((double)attention->head_dim);
  return (struct attention_shape){.B = attention->batch,
                                  .Tq = attention->queries,
                                  .Tk = attention->keys,
                                  .H = attention->heads,
                                  .D = attention->head_dim,
                                  .q_stride = q->stride,
                                  .k_stride = k->stride,
                                  .v_stride = v->stride,
                                  .scale = attention->scale != 0 ? attention->scale : usual,
                                  .ranges = attention->ranges,
                                  .shared_ranges = attention->shared_ranges,
                                  .has_bias = attention->bias != NULL};
}

static void check_shapes(const struct attention *attention, const struct value *q,
                         const struct value *k, const struct value *v) {
  const int64_t width = attention->heads * attention->head_dim;
  const struct value *bias = attention->bias;
  assert(q->cols == width && k->cols == width && v->cols == width);
  assert(q->rows == attention->batch * attention->queries);
  assert(k->rows == attention->batch * attention->keys && v->rows == k->rows);
  assert(!bias || (bias->rows == attention->heads && array_is_contiguous(bias) &&
                   bias->cols == attention->queries + attention->keys - 1));
  (void)width, (void)q, (void)k, (void)v, (void)bias;
}

struct value *attention_forward(struct tape *tape, struct value *q, struct value *k,
                                struct value *v, const struct attention *attention) {
  check_shapes(attention, q, k, v);
  struct attention_record described = {
      .q = q, .k = k, .v = v, .bias = attention->bias, .shape = shape_of(attention, q, k, v)};
  const struct attention_shape *shape = &described.shape;
  described.y = tape_value(tape, q->rows, q->cols);
  described.lse = array_sums(tape, shape->B * shape->H * shape->Tq);
  if (shape->has_bias) {
    described.bias_sums = array_sums(tape, bias_count(shape));
    tape->kernels->convert_to_sum(described.bias_sums, attention->bias->data, bias_count(shape));
  }
  tape->kernels->attention_forward(described.y->data, described.lse, q->data, k->data, v->data,
                                   described.bias_sums, shape);
  struct attention_record *kept = tape_record(tape, &attention_kind, sizeof(*kept), NULL, 0);
  if (!kept) return described.y;
  described.record = kept->record;
  *kept = described;
  return kept->y;
}
