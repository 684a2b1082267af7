/* A teacher bent by the student's rates, streamed, against dense arithmetic: divergence, distance
 * and gradients, with the teacher held fixed (its gradient is stopped).
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/model/layers/head_distill.h"
#include "tests/common/tap.h"

enum { N = 5, C = 3, T = 4, V = 75, SLICES = 8 };

struct setting {
  struct arena declarations, weights, values, records;
  struct params params;
  struct vocab vocab;
  struct kernels kernels;
  struct param *student, *teacher;
  double x[N * C], rate[N * C], first[N * T];
  float weight[N], a[N], b[N];
};

static void fill(double *numbers, int64_t count, const char *name, double scale) {
  for (int64_t i = 0; i < count; i++)
    numbers[i] = scale * random_normal(random_open(9, name, 0, 0), (uint64_t)i);
}

static void open_setting(struct setting *s) {
  *s = (struct setting){.weight = {1, 0, .5f, 2, .25f}};
  assert_ok(arena_init(&s->declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&s->weights, "weights", 1 << 20));
  assert_ok(arena_init(&s->values, "values", 64 << 20));
  assert_ok(arena_init(&s->records, "records", 1 << 20));
  assert_ok(vocab_init(&s->vocab, NULL, V, SLICES));
  assert_ok(kernels_open(&s->kernels, "reference", DTYPE_F64));
  params_init(&s->params, &s->declarations);
  s->student = params_add_table(&s->params, V, C, PARAM_NORMAL, 1, "student");
  s->teacher = params_add_table(&s->params, V, T, PARAM_NORMAL, 1, "teacher");
  s->teacher->frozen = true;
  params_bind(&s->params, &s->weights, DTYPE_F64, true);
  params_initialise(&s->params, DTYPE_F64, 3);
  fill(s->x, N * C, "x", 1);
  fill(s->rate, N * C, "rate", 1);
  fill(s->first, N * T, "first", 1);
  for (int i = 0; i < N; i++) {
    s->a[i] = 1 - 0.15f * (float)i;
    s->b[i] = i == 2 ? -0.2f : 0.1f * (float)i; /* the last ones reach the floor */
  }
}

static void close_setting(struct setting *s) {
  arena_free(&s->records);
  arena_free(&s->values);
  arena_free(&s->weights);
  arena_free(&s->declarations);
}

static double product(const double *x, const struct param *w, int64_t v) {
  double sum = 0;
  for (int64_t j = 0; j < w->cols; j++) sum += x[j] * ((const double *)w->data)[v * w->cols + j];
  return sum;
}

static void softmax(double *logits) {
  double top = -INFINITY, sum = 0;
  for (int v = 0; v < V; v++) top = fmax(top, logits[v]);
  for (int v = 0; v < V; v++) sum += exp(logits[v] - top);
  for (int v = 0; v < V; v++) logits[v] = exp(logits[v] - top) / sum;
}

/* Student q and teacher p of one token. */
static void dense(const struct setting *s, int i, double *q, double *p, int *floored) {
  double rates[V], mean = 0;
  for (int v = 0; v < V; v++) {
    q[v] = product(s->x + i * C, s->student, v);
    rates[v] = product(s->rate + i * C, s->student, v);
  }
  softmax(q);
  for (int v = 0; v < V; v++) mean += q[v] * rates[v];
  for (int v = 0; v < V; v++) {
    const double left = (double)s->a[i] - (double)s->b[i] * (rates[v] - mean);
    *floored += left < 1e-6;
    p[v] = product(s->first + i * T, s->teacher, v) - log(fmax(left, 1e-6));
  }
  softmax(p);
}

struct streamed {
  double loss[N], distance[N], dx[N * C];
};

static struct value *put(struct tape *tape, const double *numbers, int64_t cols, bool gradient) {
  struct value *value = tape_constant(tape, N, cols);
  memcpy(value->data, numbers, (size_t)(N * cols) * sizeof(double));
  value->needs_gradient = gradient;
  return value;
}

static void stream(struct setting *s, struct streamed *out) {
  struct tape tape;
  tape_init(&tape, &s->kernels, &s->values, &s->records);
  struct value *x = put(&tape, s->x, C, true);
  const struct head_bend bend = {put(&tape, s->rate, C, false), s->a, s->b};
  const struct head_teacher teacher = {
      .w = s->teacher, .first = put(&tape, s->first, T, false), .bend = &bend};
  head_distill_forward(&tape, &(struct head_distill_result){out->loss, out->distance}, x,
                       &(struct head){.vocab = &s->vocab, .w = s->student, .weight = s->weight},
                       &teacher, DIVERGENCE_FORWARD_KL);
  assert_ok(tape_backward(&tape, NULL, NULL));
  memcpy(out->dx, x->gradient, sizeof out->dx);
}

static void streamed_is_dense(void **state) {
  (void)state;
  struct setting s;
  struct streamed out;
  double dw[V * C] = {0};
  int floored = 0;
  open_setting(&s);
  stream(&s, &out);
  for (int i = 0; i < N; i++) {
    double q[V], p[V], loss = 0, distance = 0, dx[C] = {0};
    if (s.weight[i] == 0) continue;
    dense(&s, i, q, p, &floored);
    for (int v = 0; v < V; v++) {
      loss += p[v] * log(p[v] / q[v]);
      distance += (q[v] - p[v]) * (q[v] - p[v]);
      for (int j = 0; j < C; j++) {
        const double slope = (double)s.weight[i] * (q[v] - p[v]);
        dx[j] += slope * ((double *)s.student->data)[v * C + j];
        dw[v * C + j] += slope * s.x[i * C + j];
      }
    }
    assert_near(out.loss[i], loss, 1e-10);
    assert_near(out.distance[i], distance, 1e-10);
    for (int j = 0; j < C; j++) assert_near(out.dx[i * C + j], dx[j], 1e-10);
  }
  for (int k = 0; k < V * C; k++) assert_near(((double *)s.student->gradient)[k], dw[k], 1e-10);
  assert_true(floored > 0);
  close_setting(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(streamed_is_dense)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
