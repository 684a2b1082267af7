/* The head at V = 300,000 against double: log-sum-exp, and the gradients of hidden states and table
 * (R-VOC-2: gradients to 1e-5 with single precision tables, 1e-2 with bf16; log-sum-exp to two
 * units in the last place of single precision, also where states and table are bf16: R-VOC-4).
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "stages/model/layers/head.h"
#include "tests/common/tap.h"

enum { N = 4, C = 8, V = 300000, SLICES = 16 };

struct bench {
  struct kernels kernels;
  struct arena declarations, arena, records;
  struct params params;
  struct vocab vocab;
  struct tape tape;
  struct param *w;
  struct value *x;
  float x_source[N * C];
  float *w_wide; /* [V, C] as stored */
};

static const int32_t targets[N] = {0, 299999, 150001, 77};
static const float weight[N] = {1, 0.5f, 2, 1};

static void open_bench(struct bench *bench, enum dtype element) {
  const size_t bytes = (size_t)V * C * (dtype_bytes(element) + sizeof(float));
  assert_ok(kernels_open(&bench->kernels, "cpu", element));
  assert_ok(arena_init(&bench->declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&bench->records, "records", 1 << 20));
  assert_ok(arena_init(&bench->arena, "head", bytes + (64 << 20)));
  assert_ok(vocab_init(&bench->vocab, NULL, V, SLICES));
  params_init(&bench->params, &bench->declarations);
  bench->w = params_add_table(&bench->params, V, C, PARAM_UNIFORM, 1.5, "w");
  params_bind(&bench->params, &bench->arena, element, true);
  params_initialise(&bench->params, element, 3);
  bench->w_wide = malloc((size_t)V * C * sizeof *bench->w_wide);
  bench->kernels.convert_to_float(bench->w_wide, bench->w->data, V * C);
  tape_init(&bench->tape, &bench->kernels, &bench->arena, &bench->records);
  random_fill_normal(bench->x_source, N * C, random_open(5, "x", 0, 0), 0);
  bench->x = tape_input(&bench->tape, bench->x_source, N, C);
  bench->x->needs_gradient = true;
  tape_output(&bench->tape, bench->x_source, bench->x);
}

static void close_bench(struct bench *bench) {
  free(bench->w_wide);
  arena_free(&bench->declarations);
  arena_free(&bench->records);
  arena_free(&bench->arena);
}

static double logit(const struct bench *bench, int64_t i, int64_t v) {
  double sum = 0;
  for (int64_t c = 0; c < C; c++)
    sum += (double)bench->x_source[i * C + c] * (double)bench->w_wide[v * C + c];
  return sum;
}

static double whole_lse(const struct bench *bench, int64_t i) {
  double top = -INFINITY, sum = 0;
  for (int64_t v = 0; v < V; v++) top = fmax(top, logit(bench, i, v));
  for (int64_t v = 0; v < V; v++) sum += exp(logit(bench, i, v) - top);
  return top + log(sum);
}

static double slope(const struct bench *bench, int64_t i, int64_t v, double lse) {
  return (double)weight[i] * (exp(logit(bench, i, v) - lse) - (targets[i] == v ? 1 : 0));
}

/* Relative to the largest magnitude: sums of many small terms. */
struct error {
  double worst, size;
};

static void note(struct error *error, double found, double expected) {
  error->worst = fmax(error->worst, fabs(found - expected));
  error->size = fmax(error->size, fabs(expected));
}

static void check_dx(const struct bench *bench, const double *lse, double bound) {
  struct error error = {0, 0};
  float found[N * C];
  bench->kernels.convert_to_float(found, bench->x->gradient, N * C);
  for (int64_t i = 0; i < N; i++) {
    double expected[C] = {0};
    for (int64_t v = 0; v < V; v++) {
      const double ds = slope(bench, i, v, lse[i]);
      for (int64_t c = 0; c < C; c++) expected[c] += ds * (double)bench->w_wide[v * C + c];
    }
    for (int64_t c = 0; c < C; c++) note(&error, (double)found[i * C + c], expected[c]);
  }
  assert_true(error.worst <= bound * error.size);
}

static void check_dw(const struct bench *bench, const double *lse, double bound) {
  struct error error = {0, 0};
  for (int64_t v = 0; v < V; v++) {
    double ds[N];
    for (int64_t i = 0; i < N; i++) ds[i] = slope(bench, i, v, lse[i]);
    for (int64_t c = 0; c < C; c++) {
      double expected = 0;
      for (int64_t i = 0; i < N; i++) expected += ds[i] * (double)bench->x_source[i * C + c];
      note(&error, (double)((const float *)bench->w->gradient)[v * C + c], expected);
    }
  }
  assert_true(error.worst <= bound * error.size);
}

static void check(enum dtype element, double bound) {
  struct bench bench;
  double lse[N], expected[N];
  open_bench(&bench, element);
  const struct head head = {
      .vocab = &bench.vocab, .w = bench.w, .targets = targets, .weight = weight};
  head_forward(&bench.tape, &(struct head_result){.log_sum_exp = lse}, bench.x, &head);
  assert_ok(tape_backward(&bench.tape, NULL, NULL));
  for (int64_t i = 0; i < N; i++) expected[i] = whole_lse(&bench, i);
  for (int64_t i = 0; i < N; i++)
    assert_true(fabs(lse[i] - expected[i]) <= 2 * (double)FLT_EPSILON * pow(2, ilogb(expected[i])));
  check_dx(&bench, expected, bound);
  check_dw(&bench, expected, bound);
  close_bench(&bench);
}

static void single_precision(void **state) {
  (void)state;
  check(DTYPE_F32, 1e-5);
}

static void half_precision(void **state) {
  (void)state;
  check(DTYPE_BF16, 1e-2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(single_precision),
      cmocka_unit_test(half_precision),
  };
  return cmocka_run_group_tests_name("R-VOC-2 the head at V = 300,000", tests, NULL, NULL);
}
