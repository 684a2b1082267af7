/* The streamed heads against the whole softmax in double, for every kernel table (R-VOC-2, -3). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/model/layers/head.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/head_expectation.h"
#include "stages/model/layers/head_sample.h"
#include "tests/common/tap.h"

enum { N = 70, C = 6, D = 5, V = 1500, SLICES = 3 };

/* One kernel table with a table, a bias and hidden states, as values and in double. */
struct bench {
  struct kernels kernels;
  struct arena declarations, arena, records;
  struct params params;
  struct vocab vocab;
  struct tape tape;
  struct param *w, *b, *table;
  struct value *x, *first, *second;
  double w_wide[V * C], b_wide[V], table_wide[V * D];
  double x_wide[3][N * C];
};

static struct bench bench;
static double logits[3][V];

static void widen(double *wide, const void *data, int64_t count, enum dtype dtype) {
  float *narrow = malloc((size_t)count * sizeof *narrow);
  if (dtype == DTYPE_F64) {
    memcpy(wide, data, (size_t)count * sizeof *wide);
  } else if (dtype == DTYPE_F32) {
    for (int64_t i = 0; i < count; i++) wide[i] = (double)((const float *)data)[i];
  } else {
    bench.kernels.convert_to_float(narrow, data, count);
    for (int64_t i = 0; i < count; i++) wide[i] = (double)narrow[i];
  }
  free(narrow);
}

static struct value *states(int which) {
  float source[N * C];
  random_fill_normal(source, N * C, random_open(5, "states", (uint64_t)which, 0), 0);
  struct value *x = tape_input(&bench.tape, source, N, C);
  x->needs_gradient = which == 0;
  widen(bench.x_wide[which], x->data, N * C, bench.kernels.element);
  return x;
}

static void bind(void) {
  struct arena measure;
  arena_measure(&measure, "heads");
  params_bind(&bench.params, &measure, bench.kernels.element, true);
  assert_ok(arena_init(&bench.arena, "heads", measure.peak + (64 << 20)));
  params_bind(&bench.params, &bench.arena, bench.kernels.element, true);
  params_initialise(&bench.params, bench.kernels.element, 3);
  widen(bench.w_wide, bench.w->data, V * C, bench.kernels.element);
  widen(bench.b_wide, bench.b->data, V, bench.kernels.sum);
  widen(bench.table_wide, bench.table->data, V * D, bench.kernels.element);
}

static void open_bench(const char *name, enum dtype element) {
  assert_ok(kernels_open(&bench.kernels, name, element));
  assert_ok(arena_init(&bench.declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&bench.records, "records", 1 << 20));
  assert_ok(vocab_init(&bench.vocab, NULL, V, SLICES));
  params_init(&bench.params, &bench.declarations);
  bench.w = params_add_table(&bench.params, V, C, PARAM_NORMAL, 0.7, "w");
  bench.b = params_add_table(&bench.params, V, 1, PARAM_NORMAL, 1, "b");
  bench.b->kind = PARAM_VECTOR;
  bench.table = params_add_table(&bench.params, V, D, PARAM_NORMAL, 1, "table");
  bind();
  tape_init(&bench.tape, &bench.kernels, &bench.arena, &bench.records);
  bench.x = states(0);
  bench.first = states(1);
  bench.second = states(2);
}

static void close_bench(void) {
  arena_free(&bench.arena);
  arena_free(&bench.records);
  arena_free(&bench.declarations);
}

/* Logits of a row in double; returns their log-sum-exp. */
static double whole_logits(double *out, int which, int64_t row, bool biased) {
  double top = -INFINITY, sum = 0;
  for (int64_t v = 0; v < V; v++) {
    out[v] = biased ? bench.b_wide[v] : 0;
    for (int64_t c = 0; c < C; c++)
      out[v] += bench.x_wide[which][row * C + c] * bench.w_wide[v * C + c];
    top = fmax(top, out[v]);
  }
  for (int64_t v = 0; v < V; v++) sum += exp(out[v] - top);
  return top + log(sum);
}

static void close_to(double found, double expected, double bound, const char *what, int64_t i) {
  if (!(fabs(found - expected) <= bound * (1 + fabs(expected))))
    fail_msg("%s of %s, token %d: %.9g, expected %.9g", what, bench.kernels.name, (int)i, found,
             expected);
}

static struct head head_of(const int32_t *targets, const float *weight) {
  return (struct head){&bench.vocab, bench.w, bench.b, targets, weight};
}

static void check_cross_entropy(double bound) {
  static double loss[N], lse[N], target_logit[N], squares[N];
  static int32_t argmax[N], targets[N];
  struct head_result result = {loss, lse, target_logit, squares, argmax};
  for (int i = 0; i < N; i++) targets[i] = i * 211 % V;
  const struct head head = head_of(targets, NULL);
  head_forward(&bench.tape, &result, bench.x, &head);
  assert_ok(bench.tape.status);
  for (int64_t i = 0; i < N; i++) {
    const double whole = whole_logits(logits[0], 0, i, true);
    int64_t best = 0;
    double square = 0;
    for (int64_t v = 0; v < V; v++) square += exp(2 * (logits[0][v] - whole));
    for (int64_t v = 0; v < V; v++) best = logits[0][v] > logits[0][best] ? v : best;
    close_to(lse[i], whole, bound, "log-sum-exp", i);
    close_to(target_logit[i], logits[0][targets[i]], bound, "target's logit", i);
    close_to(loss[i], whole - logits[0][targets[i]], bound, "loss", i);
    close_to(squares[i], square, bound, "sum of squares", i);
    close_to(logits[0][argmax[i]], logits[0][best], bound, "highest logit", i);
  }
}

static void check_expectation(double bound) {
  static float rows[N * D];
  const struct head head = head_of(NULL, NULL);
  struct value *y = head_expectation(&bench.tape, bench.x, &head, bench.table);
  assert_ok(bench.tape.status);
  tape_output(&bench.tape, rows, y);
  for (int64_t i = 0; i < N; i++) {
    const double whole = whole_logits(logits[0], 0, i, true);
    for (int64_t d = 0; d < D; d++) {
      double mean = 0;
      for (int64_t v = 0; v < V; v++)
        mean += exp(logits[0][v] - whole) * bench.table_wide[v * D + d];
      close_to((double)rows[i * D + d], mean, bound, "expectation", i);
    }
  }
}

static void check_divergence(double bound) {
  static double loss[N], distance[N], omega[N];
  static float weight[N];
  for (int i = 0; i < N; i++) omega[i] = (i % 4) / 3.0;
  for (int i = 0; i < N; i++) weight[i] = i % 7 == 0 ? 0 : 1;
  struct head head = head_of(NULL, weight);
  head.b = NULL;
  const struct head_teacher teacher = {bench.w, bench.first, bench.second, omega};
  head_distill_forward(&bench.tape, &(struct head_distill_result){loss, distance}, bench.x, &head,
                       &teacher);
  assert_ok(bench.tape.status);
  for (int64_t i = 0; i < N; i++) {
    double lse[3], divergence = 0, squared = 0;
    for (int k = 0; k < 3; k++) lse[k] = whole_logits(logits[k], k, i, false);
    for (int64_t v = 0; v < V; v++) {
      const double q = exp(logits[0][v] - lse[0]);
      const double p =
          omega[i] * exp(logits[1][v] - lse[1]) + (1 - omega[i]) * exp(logits[2][v] - lse[2]);
      divergence += p * log(p / q);
      squared += (q - p) * (q - p);
    }
    close_to(loss[i], weight[i] > 0 ? divergence : 0, bound, "divergence", i);
    close_to(distance[i], weight[i] > 0 ? squared : 0, bound, "distance", i);
  }
}

static void check_sample(double temperature) {
  static int32_t ids[N];
  const struct random_stream streams[] = {random_open(1, "draw", 4, 0),
                                          random_open(1, "draw", 5, 0)};
  const struct head head = head_of(NULL, NULL);
  head_sample(&bench.tape, ids, bench.x, &head, temperature, streams, N / 2);
  assert_ok(bench.tape.status);
  for (int64_t i = 0; i < N; i++) {
    double best = -INFINITY, taken = 0;
    whole_logits(logits[0], 0, i, true);
    for (int64_t v = 0; v < V; v++) {
      const double u = random_uniform(streams[i / (N / 2)], (uint64_t)(i % (N / 2) * V + v));
      const double score =
          temperature > 0 ? logits[0][v] / temperature - log(-log(u)) : logits[0][v];
      best = fmax(best, score);
      if (v == ids[i]) taken = score;
    }
    close_to(taken, best, 1e-4, "best score", i);
  }
}

static void check_all(const char *name, enum dtype element, double bound, double rounded) {
  open_bench(name, element);
  check_cross_entropy(bound);
  check_expectation(rounded);
  check_divergence(bound);
  check_sample(0.8);
  check_sample(0);
  close_bench();
}

static void in_double(void **state) {
  (void)state;
  check_all("reference", DTYPE_F64, 1e-10, 1e-6);
}

static void in_single(void **state) {
  (void)state;
  check_all("reference", DTYPE_F32, 2e-5, 2e-5);
  check_all("cpu", DTYPE_F32, 2e-5, 2e-5);
}

static void in_bf16(void **state) {
  (void)state;
  check_all("reference", DTYPE_BF16, 1e-4, 1e-2);
  check_all("cpu", DTYPE_BF16, 1e-4, 1e-2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_double),
      cmocka_unit_test(in_single),
      cmocka_unit_test(in_bf16),
  };
  return cmocka_run_group_tests_name("streamed heads equal the whole softmax", tests, NULL, NULL);
}
