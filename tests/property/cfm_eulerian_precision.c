/* The rate of the Eulerian identity in bf16, exact against differences: the variance of each about
 * the rate in double of the same weights, as a share of the rate's own size. Differences of rounded
 * numbers are mostly rounding; the exact derivative is not.
 */
#include <math.h>
#include <stdio.h>

#include "pipeline/base/bf16.h"
#include "pipeline/base/random.h"
#include "stages/flow/cfm_state.h"
#include "tests/common/tap.h"

enum {
  ROWS = 16,
  POSITIONS = 8,
  N = ROWS * POSITIONS,
  WIDTH = 32,
  VOCABULARY = 64,
  WORK = 64 << 20
};

struct setting {
  struct arena declarations, weights, values, records;
  struct params params, teacher;
  struct options options, distill;
  struct vocab vocab;
  struct kernels kernels;
  struct flow flow;
};

static void open_flow(struct setting *s, const char *kernels, enum dtype element) {
  assert_ok(arena_init(&s->declarations, "declarations", 16 << 20));
  assert_ok(arena_init(&s->values, "values", WORK));
  assert_ok(arena_init(&s->records, "records", WORK));
  assert_ok(vocab_init(&s->vocab, NULL, VOCABULARY, 4));
  assert_ok(kernels_open(&s->kernels, kernels, element));
  options_defaults(&s->options);
  options_defaults(&s->distill);
  s->options.width = WIDTH;
  s->options.depth = 3;
  s->options.heads = 2;
  s->options.cfm_condition = 16;
  params_init(&s->params, &s->declarations);
  params_init(&s->teacher, &s->declarations);
  s->flow = (struct flow){.kind = &flow_cfm,
                          .options = &s->options,
                          .distill = &s->distill,
                          .vocab = &s->vocab,
                          .kernels = &s->kernels,
                          .params = &s->params,
                          .teacher = &s->teacher,
                          .positions = POSITIONS};
  assert_ok(flow_cfm.init(&s->flow, &s->declarations));
}

static void open_setting(struct setting *s, const char *kernels, enum dtype element) {
  struct arena measuring;
  *s = (struct setting){.options = {0}};
  open_flow(s, kernels, element);
  arena_measure(&measuring, "weights");
  params_bind(&s->params, &measuring, element, false);
  assert_ok(arena_init(&s->weights, "weights", measuring.peak));
  params_bind(&s->params, &s->weights, element, false);
  for (int64_t i = 0; i < s->params.count; i++)
    if (s->params.items[i]->init == PARAM_ZERO) { /* modulations that do something */
      s->params.items[i]->init = PARAM_NORMAL;
      s->params.items[i]->scale = 0.2;
    }
  params_initialise(&s->params, element, 7);
}

static void close_setting(struct setting *s) {
  arena_free(&s->records);
  arena_free(&s->values);
  arena_free(&s->weights);
  arena_free(&s->declarations);
}

/* Weights of the other element types, as bf16 rounds them. */
static void round_weights(const struct setting *s) {
  for (int64_t p = 0; p < s->params.count; p++) {
    const struct param *param = s->params.items[p];
    const enum dtype dtype = param_dtype(param, s->kernels.element);
    for (int64_t i = 0; param->kind != PARAM_VECTOR && i < param_count(param); i++) {
      double *wide = param->data;
      float *narrow = param->data;
      if (dtype == DTYPE_F64) wide[i] = (double)bf16_to_float(bf16_from_float((float)wide[i]));
      if (dtype == DTYPE_F32) narrow[i] = bf16_to_float(bf16_from_float(narrow[i]));
    }
  }
}

static void draw(float *numbers, const char *purpose) {
  random_fill_normal(numbers, N * WIDTH, random_open(3, purpose, 0, 0), 0);
  for (int i = 0; i < N * WIDTH; i++) numbers[i] = bf16_to_float(bf16_from_float(numbers[i]));
}

/* Times from the beginning to near the end. */
static struct cfm_jumps make_jumps(struct tape *tape) {
  struct cfm_jumps jumps = {.count = ROWS, .positions = POSITIONS};
  jumps.from = arena_take(tape->records, ROWS * sizeof(double));
  jumps.to = arena_take(tape->records, ROWS * sizeof(double));
  jumps.weight = arena_take(tape->records, N * sizeof(float));
  for (int j = 0; j < ROWS; j++) {
    jumps.from[j] = 0.05 + 0.8 * j / ROWS;
    jumps.to[j] = jumps.from[j] + 0.7 * (1 - jumps.from[j]);
  }
  for (int i = 0; i < N; i++) jumps.weight[i] = 1;
  return jumps;
}

/* The rate with these kernels; step 0: exact. */
static void rate_of(float *rate, const char *kernels, enum dtype element, double step) {
  struct setting s;
  struct tape tape;
  float y[N * WIDTH], mean[N * WIDTH];
  open_setting(&s, kernels, element);
  round_weights(&s);
  s.distill.distill_loss = step > 0 ? IDENTITY_EULERIAN_DIFFERENCE : IDENTITY_EULERIAN;
  s.distill.distill_step = step;
  tape_init(&tape, &s.kernels, &s.values, &s.records);
  tape.recording = false;
  const struct cfm_jumps jumps = make_jumps(&tape);
  draw(y, "state");
  draw(mean, "mean");
  tape_output(&tape, rate,
              cfm_eulerian_rate(&s.flow, &tape, &jumps, tape_input(&tape, y, N, WIDTH),
                                tape_input(&tape, mean, N, WIDTH)));
  close_setting(&s);
}

static double relative_variance(const float *rate, const float *truth) {
  double error = 0, size = 0;
  for (int i = 0; i < N * WIDTH; i++) {
    error += ((double)rate[i] - (double)truth[i]) * ((double)rate[i] - (double)truth[i]);
    size += (double)truth[i] * (double)truth[i];
  }
  return error / size;
}

static void exact_rate_varies_least_in_bf16(void **state) {
  (void)state;
  static const double steps[] = {1e-3, 5e-3, 2e-2, 1e-1};
  static float truth[N * WIDTH], rate[N * WIDTH];
  rate_of(truth, "reference", DTYPE_F64, 0);
  rate_of(rate, "cpu", DTYPE_F32, 0);
  printf("# exact,              fp32: relative variance %.2e\n", relative_variance(rate, truth));
  assert_true(relative_variance(rate, truth) < 1e-8);
  rate_of(rate, "cpu", DTYPE_BF16, 0);
  const double exact = relative_variance(rate, truth);
  printf("# exact,              bf16: relative variance %.2e\n", exact);
  assert_true(exact < 2e-3);
  for (int i = 0; i < 4; i++) {
    rate_of(rate, "cpu", DTYPE_F32, steps[i]);
    printf("# difference, %.0e, fp32: relative variance %.2e\n", steps[i],
           relative_variance(rate, truth));
    rate_of(rate, "cpu", DTYPE_BF16, steps[i]);
    const double difference = relative_variance(rate, truth);
    printf("# difference, %.0e, bf16: relative variance %.2e\n", steps[i], difference);
    assert_true(difference > 5 * exact);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exact_rate_varies_least_in_bf16)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
