/* Losses of the head and their gradients against the whole softmax in double: label smoothing, the
 * penalty of the log-sum-exp, three divergences from one teacher and from two, and tokens that take
 * no part (R-VOC-3). */
#include <math.h>
#include <string.h>

#include "stages/model/layers/head_distill.h"
#include "tests/common/head_case.h"
#include "tests/common/tap.h"

enum { N = 40, C = 6, V = 1300, SLICES = 3 };

static const double SMOOTHING = 0.15, PENALTY = 0.01;

static struct head_case bench;
static int32_t targets[N];
static float weight[N];
static double omega[N];

/* Of one token, in double: */
static double slopes[V]; /* of its loss by its logits */
static double logits[3][V];

static void start(const char *name, enum dtype element) {
  bench = (struct head_case){
      .name = name, .element = element, .N = N, .C = C, .V = V, .D = 1, .slices = SLICES};
  head_case_open(&bench);
  for (int i = 0; i < N; i++) {
    targets[i] = i % 11 == 5 ? -1 : i * 211 % V;
    weight[i] = i % 7 == 3 ? 0 : 0.25f * (float)(1 + i % 3);
    omega[i] = (i % 4) / 3.0;
  }
}

static double cross_entropy_of(int64_t i) {
  const double lse = head_case_logits(&bench, logits[0], 0, i, true);
  double loss = lse + PENALTY * lse * lse;
  for (int64_t v = 0; v < V; v++) {
    const double p = (v == targets[i] ? 1 - SMOOTHING : 0) + SMOOTHING / V;
    slopes[v] = exp(logits[0][v] - lse) * (1 + 2 * PENALTY * lse) - p;
    loss -= p * logits[0][v];
  }
  return loss;
}

/* p and q of the whole vocabulary into the places of logits. */
static void make_probabilities(int64_t i, bool mixes) {
  double lse[3];
  for (int k = 0; k < 3; k++) lse[k] = head_case_logits(&bench, logits[k], k, i, k == 0);
  for (int64_t v = 0; v < V; v++) {
    const double share = mixes ? omega[i] : 1;
    logits[0][v] = exp(logits[0][v] - lse[0]);
    logits[1][v] = share * exp(logits[1][v] - lse[1]) + (1 - share) * exp(logits[2][v] - lse[2]);
  }
}

static double divergence_of(enum divergence kind) {
  const double *q = logits[0], *p = logits[1];
  double to_teacher = 0, to_student = 0;
  for (int64_t v = 0; v < V; v++) {
    const double m = kind == DIVERGENCE_JENSEN_SHANNON ? (p[v] + q[v]) / 2 : 0;
    to_teacher += p[v] * log(p[v] / (m > 0 ? m : q[v]));
    to_student += q[v] * log(q[v] / (m > 0 ? m : p[v]));
  }
  for (int64_t v = 0; v < V; v++) {
    const double m = (p[v] + q[v]) / 2;
    slopes[v] = q[v] - p[v];
    if (kind == DIVERGENCE_REVERSE_KL) slopes[v] = q[v] * (log(q[v] / p[v]) - to_student);
    if (kind == DIVERGENCE_JENSEN_SHANNON) slopes[v] = q[v] * (log(q[v] / m) - to_student) / 2;
  }
  if (kind == DIVERGENCE_FORWARD_KL) return to_teacher;
  return kind == DIVERGENCE_REVERSE_KL ? to_student : (to_teacher + to_student) / 2;
}

/* Gradients in double: what the slopes of a token add. */
struct gradients {
  double x[N * C], w[V * C], b[V];
};

static struct gradients expected, found;

static void add_gradients(int64_t i) {
  for (int64_t v = 0; v < V; v++) {
    const double slope = (double)weight[i] * slopes[v];
    expected.b[v] += slope;
    for (int64_t c = 0; c < C; c++) {
      expected.x[i * C + c] += slope * bench.w_wide[v * C + c];
      expected.w[v * C + c] += slope * bench.x_wide[0][i * C + c];
    }
  }
}

static void compare(const double *a, const double *b, int64_t count, double bound,
                    const char *what) {
  double size = 0;
  for (int64_t i = 0; i < count; i++) size = fmax(size, fabs(b[i]));
  assert_true(size > 0);
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(a[i] - b[i]) <= bound * size))
      fail_msg("%s of %s, number %d: %.9g, expected %.9g", what, bench.name, (int)i, a[i], b[i]);
}

static void compare_gradients(double bound) {
  assert_ok(tape_backward(&bench.tape, NULL, NULL));
  head_case_widen(&bench, found.x, bench.x[0]->gradient, N * C, bench.element);
  head_case_widen(&bench, found.w, bench.w->gradient, V * C, bench.kernels.sum);
  head_case_widen(&bench, found.b, bench.b->gradient, V, bench.kernels.sum);
  compare(found.x, expected.x, N * C, bound, "dx");
  compare(found.w, expected.w, V * C, bound, "dw");
  compare(found.b, expected.b, V, bound, "db");
}

static void check_cross_entropy(const char *name, enum dtype element, double bound, double rough) {
  static double loss[N], smoothing[N], penalty[N];
  struct head_result result = {.loss = loss, .smoothing = smoothing, .penalty = penalty};
  memset(&expected, 0, sizeof expected);
  start(name, element);
  struct head head = head_case_head(&bench, true);
  head.targets = targets;
  head.weight = weight;
  head.smoothing = SMOOTHING;
  head.log_sum_exp_penalty = PENALTY;
  head_forward(&bench.tape, &result, bench.x[0], &head);
  for (int64_t i = 0; i < N; i++) {
    const bool takes_part = weight[i] > 0 && targets[i] >= 0;
    const double whole = takes_part ? cross_entropy_of(i) : 0;
    head_case_close_to(&bench, loss[i] + smoothing[i] + penalty[i], whole, bound, "loss", i);
    if (takes_part) add_gradients(i);
  }
  compare_gradients(rough);
  head_case_close(&bench);
}

static double squared_distance(void) {
  double sum = 0;
  for (int64_t v = 0; v < V; v++) sum += pow(logits[0][v] - logits[1][v], 2);
  return sum;
}

static void check_divergence(const char *name, enum dtype element, enum divergence kind, bool mixes,
                             double bound, double rough) {
  static double loss[N], distance[N];
  memset(&expected, 0, sizeof expected);
  start(name, element);
  struct head head = head_case_head(&bench, true);
  head.weight = weight;
  const struct head_teacher teacher = {bench.w, bench.x[1], mixes ? bench.x[2] : NULL, omega, NULL};
  head_distill_forward(&bench.tape, &(struct head_distill_result){loss, distance}, bench.x[0],
                       &head, &teacher, kind);
  for (int64_t i = 0; i < N; i++) {
    make_probabilities(i, mixes);
    const double takes_part = weight[i] > 0 ? 1 : 0;
    head_case_close_to(&bench, loss[i], takes_part * divergence_of(kind), bound, "divergence", i);
    head_case_close_to(&bench, distance[i], takes_part * squared_distance(), bound, "distance", i);
    if (takes_part > 0) add_gradients(i);
  }
  compare_gradients(rough);
  head_case_close(&bench);
}

static void check_all(const char *name, enum dtype element, double bound, double rough) {
  check_cross_entropy(name, element, bound, rough);
  for (int mixes = 0; mixes < 2; mixes++) {
    check_divergence(name, element, DIVERGENCE_FORWARD_KL, mixes, bound, rough);
    check_divergence(name, element, DIVERGENCE_REVERSE_KL, mixes, bound, rough);
    check_divergence(name, element, DIVERGENCE_JENSEN_SHANNON, mixes, bound, rough);
  }
}

static void in_double(void **state) {
  (void)state;
  check_all("reference", DTYPE_F64, 1e-9, 1e-9);
}

static void in_single(void **state) {
  (void)state;
  check_all("reference", DTYPE_F32, 2e-5, 2e-5);
  check_all("cpu", DTYPE_F32, 2e-5, 2e-5);
}

static void in_bf16(void **state) {
  (void)state;
  check_all("reference", DTYPE_BF16, 1e-4, 2e-2);
  check_all("cpu", DTYPE_BF16, 1e-4, 2e-2);
}

/* Whatever stands in tokens without a target or of weight 0, nothing of it reaches a gradient. */
static void what_is_ignored_does_not_matter(void **state) {
  (void)state;
  static double loss[N];
  static struct gradients first;
  for (int round = 0; round < 2; round++) {
    start("cpu", DTYPE_F32);
    float *x = bench.x[0]->data;
    for (int64_t i = 0; i < N * C; i++)
      if (round && (weight[i / C] == 0 || targets[i / C] < 0)) x[i] = NAN;
    struct head head = head_case_head(&bench, true);
    head.targets = targets;
    head.weight = weight;
    head.smoothing = SMOOTHING;
    head.log_sum_exp_penalty = PENALTY;
    head_forward(&bench.tape, &(struct head_result){.loss = loss}, bench.x[0], &head);
    assert_ok(tape_backward(&bench.tape, NULL, NULL));
    head_case_widen(&bench, found.x, bench.x[0]->gradient, N * C, DTYPE_F32);
    head_case_widen(&bench, found.w, bench.w->gradient, V * C, DTYPE_F32);
    head_case_widen(&bench, found.b, bench.b->gradient, V, DTYPE_F32);
    if (round) assert_memory_equal(&first, &found, sizeof first);
    first = found;
    for (int64_t i = 0; i < N; i++)
      if (weight[i] == 0 || targets[i] < 0) assert_true(loss[i] == 0 && found.x[i * C] == 0);
    head_case_close(&bench);
  }
}

/* A mixture that is all of one teacher gives the bits of that teacher alone. */
static void limits_of_the_mixture(void **state) {
  (void)state;
  static double loss[2][N], distance[2][N];
  static struct gradients both[2];
  for (int kind = 0; kind < 3; kind++)
    for (int which = 1; which <= 2; which++) {
      for (int mixes = 0; mixes < 2; mixes++) {
        start("cpu", DTYPE_F32);
        for (int i = 0; i < N; i++) omega[i] = which == 1 ? 1 : 0;
        struct head head = head_case_head(&bench, true);
        head.weight = weight;
        const struct head_teacher mixture = {bench.w, bench.x[1], bench.x[2], omega, NULL};
        const struct head_teacher alone = {.w = bench.w, .first = bench.x[which]};
        head_distill_forward(&bench.tape,
                             &(struct head_distill_result){loss[mixes], distance[mixes]},
                             bench.x[0], &head, mixes ? &mixture : &alone, (enum divergence)kind);
        assert_ok(tape_backward(&bench.tape, NULL, NULL));
        head_case_widen(&bench, both[mixes].x, bench.x[0]->gradient, N * C, DTYPE_F32);
        head_case_widen(&bench, both[mixes].w, bench.w->gradient, V * C, DTYPE_F32);
        head_case_close(&bench);
      }
      assert_memory_equal(loss[0], loss[1], sizeof loss[0]);
      assert_memory_equal(distance[0], distance[1], sizeof distance[0]);
      assert_memory_equal(&both[0], &both[1], sizeof both[0]);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_double),
      cmocka_unit_test(in_single),
      cmocka_unit_test(in_bf16),
      cmocka_unit_test(what_is_ignored_does_not_matter),
      cmocka_unit_test(limits_of_the_mixture),
  };
  return cmocka_run_group_tests_name("R-VOC-3 losses equal the whole softmax", tests, NULL, NULL);
}
