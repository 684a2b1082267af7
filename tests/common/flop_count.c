#include "tests/common/flop_count.h"

static struct kernels inner;
static struct flop_count count;

static void linear_forward(void *y, const void *x, const void *w, const void *bias, int64_t n,
                           int64_t out, int64_t in, int64_t y_stride, int64_t x_stride) {
  count.forward += 2.0 * (double)n * (double)out * (double)in;
  inner.linear_forward(y, x, w, bias, n, out, in, y_stride, x_stride);
}

static void linear_forward_sum(void *logits, const void *x, const void *w, const void *bias,
                               int64_t n, int64_t v, int64_t c) {
  count.forward += 2.0 * (double)n * (double)v * (double)c;
  inner.linear_forward_sum(logits, x, w, bias, n, v, c);
}

static void linear_backward_input(void *dx, const void *dy, const void *w, int64_t n, int64_t out,
                                  int64_t in, int64_t dx_stride, int64_t dy_stride, bool add) {
  count.backward += 2.0 * (double)n * (double)out * (double)in;
  inner.linear_backward_input(dx, dy, w, n, out, in, dx_stride, dy_stride, add);
}

static void linear_backward_input_sum(void *dx, const void *dlogits, const void *w, int64_t n,
                                      int64_t v, int64_t c, int64_t dlogits_stride) {
  count.backward += 2.0 * (double)n * (double)v * (double)c;
  inner.linear_backward_input_sum(dx, dlogits, w, n, v, c, dlogits_stride);
}

static void linear_backward_weight(void *dw, const void *dy, const void *x, int64_t n, int64_t out,
                                   int64_t in, int64_t dy_stride, int64_t x_stride) {
  count.backward += 2.0 * (double)n * (double)out * (double)in;
  inner.linear_backward_weight(dw, dy, x, n, out, in, dy_stride, x_stride);
}

/* Pairs of a query and a key that it sees. */
static double pairs(const struct attention_shape *s) {
  if (!s->ranges) return (double)s->B * (double)s->Tq * (double)s->Tk;
  double seen = 0;
  for (int64_t i = 0; i < (s->shared_ranges ? 1 : s->B) * s->Tq; i++) {
    const struct attention_range r = s->ranges[i];
    const int32_t first = r.first_end - r.first_begin, second = r.second_end - r.second_begin;
    seen += (first > 0 ? first : 0) + (second > 0 ? second : 0);
  }
  return s->shared_ranges ? seen * (double)s->B : seen;
}

static void attention_forward(void *y, void *lse, const void *q, const void *k, const void *v,
                              const void *bias, const struct attention_shape *shape) {
  count.forward += 4.0 * pairs(shape) * (double)shape->H * (double)shape->D;
  inner.attention_forward(y, lse, q, k, v, bias, shape);
}

static void attention_backward(void *dq, void *dk, void *dv, void *dbias, const void *dy,
                               const void *y, const void *lse, const void *q, const void *k,
                               const void *v, const void *bias, const struct attention_shape *shape,
                               bool add_q, bool add_k, bool add_v) {
  count.backward += 8.0 * pairs(shape) * (double)shape->H * (double)shape->D;
  inner.attention_backward(dq, dk, dv, dbias, dy, y, lse, q, k, v, bias, shape, add_q, add_k,
                           add_v);
}

void flop_count_open(struct kernels *kernels, const struct kernels *counted) {
  inner = *counted;
  *kernels = inner;
  kernels->linear_forward = linear_forward;
  kernels->linear_forward_sum = linear_forward_sum;
  kernels->linear_backward_input = linear_backward_input;
  kernels->linear_backward_input_sum = linear_backward_input_sum;
  kernels->linear_backward_weight = linear_backward_weight;
  kernels->attention_forward = attention_forward;
  kernels->attention_backward = attention_backward;
}

struct flop_count flop_count_take(void) {
  const struct flop_count taken = count;
  count = (struct flop_count){0};
  return taken;
}
