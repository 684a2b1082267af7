/* The streamed heads against the whole softmax in double, for every kernel table (R-VOC-2, -3). */
#include <math.h>
#include <stdlib.h>

#include "stages/model/layers/head_expectation.h"
#include "stages/model/layers/head_sample.h"
#include "tests/common/head_case.h"
#include "tests/common/tap.h"

enum { N = 70, C = 6, D = 5, V = 1500, SLICES = 3 };

static struct head_case bench;
static double logits[V];

static void check_cross_entropy(double bound) {
  static double loss[N], lse[N], target_logit[N], squares[N];
  static int32_t argmax[N], targets[N];
  struct head_result result = {.loss = loss,
                               .log_sum_exp = lse,
                               .target_logit = target_logit,
                               .square_sum = squares,
                               .argmax = argmax};
  struct head head = head_case_head(&bench, true);
  for (int i = 0; i < N; i++) targets[i] = i * 211 % V;
  head.targets = targets;
  head_forward(&bench.tape, &result, bench.x[0], &head);
  assert_ok(bench.tape.status);
  for (int64_t i = 0; i < N; i++) {
    const double whole = head_case_logits(&bench, logits, 0, i, true);
    int64_t best = 0;
    double square = 0;
    for (int64_t v = 0; v < V; v++) square += exp(2 * (logits[v] - whole));
    for (int64_t v = 0; v < V; v++) best = logits[v] > logits[best] ? v : best;
    head_case_close_to(&bench, lse[i], whole, bound, "log-sum-exp", i);
    head_case_close_to(&bench, target_logit[i], logits[targets[i]], bound, "target's logit", i);
    head_case_close_to(&bench, loss[i], whole - logits[targets[i]], bound, "loss", i);
    head_case_close_to(&bench, squares[i], square, bound, "sum of squares", i);
    head_case_close_to(&bench, logits[argmax[i]], logits[best], bound, "highest logit", i);
  }
}

static void check_expectation(double bound) {
  static float rows[N * D];
  const struct head head = head_case_head(&bench, true);
  struct value *y = head_expectation(&bench.tape, bench.x[0], &head, bench.table);
  assert_ok(bench.tape.status);
  tape_output(&bench.tape, rows, y);
  for (int64_t i = 0; i < N; i++) {
    const double whole = head_case_logits(&bench, logits, 0, i, true);
    for (int64_t d = 0; d < D; d++) {
      double mean = 0;
      for (int64_t v = 0; v < V; v++) mean += exp(logits[v] - whole) * bench.table_wide[v * D + d];
      head_case_close_to(&bench, (double)rows[i * D + d], mean, bound, "expectation", i);
    }
  }
}

static void check_sample(double temperature) {
  static int32_t ids[N];
  const struct random_stream streams[] = {random_open(1, "draw", 4, 0),
                                          random_open(1, "draw", 5, 0)};
  const struct head head = head_case_head(&bench, true);
  head_sample(&bench.tape, ids, bench.x[0], &head, (struct head_law){temperature, 1}, streams, N / 2);
  assert_ok(bench.tape.status);
  for (int64_t i = 0; i < N; i++) {
    double best = -INFINITY, taken = 0;
    head_case_logits(&bench, logits, 0, i, true);
    for (int64_t v = 0; v < V; v++) {
      const double u = random_uniform(streams[i / (N / 2)], (uint64_t)(i % (N / 2) * V + v));
      const double score = temperature > 0 ? logits[v] / temperature - log(-log(u)) : logits[v];
      best = fmax(best, score);
      if (v == ids[i]) taken = score;
    }
    head_case_close_to(&bench, taken, best, 1e-4, "best score", i);
  }
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* The lowest of the logits that have the share `top_p` together. */
static double lowest_of_nucleus(int64_t i, double temperature, double top_p) {
  static double sorted[V];
  double sum = 0, share = 0;
  head_case_logits(&bench, sorted, 0, i, true);
  qsort(sorted, V, sizeof *sorted, by_value);
  for (int64_t v = 0; v < V; v++) sum += exp((sorted[v] - sorted[0]) / temperature);
  for (int64_t v = 0; v < V; v++) {
    share += exp((sorted[v] - sorted[0]) / temperature) / sum;
    if (share >= top_p) return sorted[v];
  }
  return sorted[V - 1];
}

/* The id drawn is the best of the nucleus, up to rounding at its border. */
static void check_nucleus(double temperature, double top_p, double rounding) {
  static int32_t ids[N];
  const struct random_stream streams[] = {random_open(1, "draw", 4, 0),
                                          random_open(1, "draw", 5, 0)};
  const struct head head = head_case_head(&bench, true);
  head_sample(&bench.tape, ids, bench.x[0], &head, (struct head_law){temperature, top_p}, streams,
              N / 2);
  assert_ok(bench.tape.status);
  for (int64_t i = 0; i < N; i++) {
    const double border = lowest_of_nucleus(i, temperature, top_p);
    double best = -INFINITY, taken = -INFINITY;
    head_case_logits(&bench, logits, 0, i, true);
    for (int64_t v = 0; v < V; v++) {
      const double u = random_uniform(streams[i / (N / 2)], (uint64_t)(i % (N / 2) * V + v));
      const double score = logits[v] / temperature - log(-log(u));
      if (logits[v] >= border + rounding) best = fmax(best, score);
      if (v == ids[i]) taken = score;
    }
    assert_true(logits[ids[i]] >= border - rounding);
    assert_true(taken >= best - 1e-4);
  }
}

static void check_all(const char *name, enum dtype element, double bound, double rounded) {
  bench = (struct head_case){
      .name = name, .element = element, .N = N, .C = C, .V = V, .D = D, .slices = SLICES};
  head_case_open(&bench);
  check_cross_entropy(bound);
  check_expectation(rounded);
  check_sample(0.8);
  check_sample(0);
  check_nucleus(0.8, 0.5, 1e-3);
  check_nucleus(1.5, 0.95, 1e-3);
  head_case_close(&bench);
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
