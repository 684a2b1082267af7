/* Noise drawn in the width of the table against the literal noise in R^V: the same mean gradient of
 * the table, with less variance (decision 0003).
 *
 * The objective is a non-linear function of the state y = (1 - alpha) eps E + alpha E[c], so that
 * the gradient through the noise does not vanish.
 */
#include "tests/common/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/flow/cfm_state.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/mse.h"
#include "tests/common/tiny_flow.h"

enum { DRAWS = 4000, TOKENS = TINY_ROWS * TINY_POSITIONS };

static const double TARGET = 0.4;

/* Sums over draws of each entry of the table's gradient, and of its square. */
struct moments {
  double *sum, *square;
};

static struct moments open_moments(int64_t count) {
  const struct moments moments = {calloc((size_t)count, sizeof(double)),
                                  calloc((size_t)count, sizeof(double))};
  assert_non_null(moments.sum);
  assert_non_null(moments.square);
  return moments;
}

static void close_moments(struct moments moments) {
  free(moments.sum);
  free(moments.square);
}

static void add_draw(struct moments moments, const double *gradient, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    moments.sum[i] += gradient[i];
    moments.square[i] += gradient[i] * gradient[i];
  }
}

/* The gradient of one draw as the formulation makes it: table->gradient, completed. */
static void in_table_width(struct tiny_flow *tiny, const struct flow_batch *batch) {
  static float weight[TOKENS];
  double loss[TOKENS];
  struct tape tape;
  const size_t values = arena_mark(&tiny->values), records = arena_mark(&tiny->records);
  const struct cfm *cfm = tiny->flow.state;
  for (int i = 0; i < TOKENS; i++) weight[i] = 1;
  params_clear_gradients(&tiny->params, DTYPE_F64);
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  const struct cfm_draw draw = cfm_draw(&tiny->flow, batch, &tape);
  struct value *y = cfm_noisy(&tiny->flow, &tape, batch, &draw);
  float *target = arena_take(&tiny->records, (size_t)(TOKENS * cfm->width) * sizeof *target);
  for (int64_t i = 0; i < TOKENS * cfm->width; i++) target[i] = (float)TARGET;
  mse_forward(&tape, loss, feedforward_activation(&tape, y, ACTIVATION_GELU),
              tape_input(&tape, target, TOKENS, cfm->width), weight);
  assert_ok(tape_backward(&tape, NULL, NULL));
  assert_ok(flow_cfm.complete_gradients(&tiny->flow));
  arena_reset(&tiny->values, values);
  arena_reset(&tiny->records, records);
}

static double gelu(double x) {
  return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* d loss / d y of one channel. */
static double slope(double y, int64_t width) {
  const double gelu_slope = (gelu(y + 1e-5) - gelu(y - 1e-5)) / 2e-5;
  return 2 * (gelu(y) - (double)(float)TARGET) * gelu_slope / (double)width;
}

/* Adds one token's share to gradient[V, d]: z delta', z = (1 - alpha) eps + alpha e_c. */
static void literal_token(const double *table, int64_t width, double alpha, int32_t token,
                          struct random_stream stream, double *gradient) {
  double z[TINY_VOCABULARY];
  for (int v = 0; v < TINY_VOCABULARY; v++)
    z[v] = (1 - alpha) * random_normal(stream, (uint64_t)v) + (v == token ? alpha : 0);
  for (int64_t c = 0; c < width; c++) {
    double y = 0;
    for (int v = 0; v < TINY_VOCABULARY; v++) y += z[v] * table[v * width + c];
    for (int v = 0; v < TINY_VOCABULARY; v++) gradient[v * width + c] += z[v] * slope(y, width);
  }
}

static void in_vocabulary(const struct tiny_flow *tiny, const struct flow_batch *batch,
                          double *gradient) {
  const struct cfm *cfm = tiny->flow.state;
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct cfm_row drawn = cfm_draw_row(&tiny->flow, batch, row);
    for (int64_t i = 0; i < TINY_POSITIONS; i++) {
      const int64_t at = row * TINY_POSITIONS + i;
      literal_token(cfm->model.table->data, cfm->width, drawn.from, batch->tokens[at],
                    random_open(77, "literal", (uint64_t)at, batch->step), gradient);
    }
  }
}

static void open_tiny(struct tiny_flow *tiny) {
  tiny_flow_options(tiny);
  tiny->options.cfm_prefix = 0;
  tiny->options.cfm_lambda = 0;
  tiny_flow_open(tiny, &flow_cfm);
  tiny_flow_bind(tiny);
  assert_ok(flow_cfm.prepare(&tiny->flow));
}

static void compare(struct moments ours, struct moments literal, int64_t count) {
  double our_power = 0, literal_power = 0;
  for (int64_t i = 0; i < count; i++) {
    const double a = ours.sum[i] / DRAWS, b = literal.sum[i] / DRAWS;
    const double variance =
        (ours.square[i] / DRAWS - a * a + literal.square[i] / DRAWS - b * b) / DRAWS;
    if (fabs(a - b) > 5 * sqrt(variance))
      fail_msg("entry %lld: %g in table width, %g literally, error %g", (long long)i, a, b,
               sqrt(variance));
    our_power += ours.square[i];
    literal_power += literal.square[i];
  }
  print_message("# second moment: %.3f of the literal one\n", our_power / literal_power);
  assert_true(our_power < literal_power);
}

static void gradients_agree_in_the_mean(void **state) {
  (void)state;
  static struct tiny_flow tiny;
  open_tiny(&tiny);
  const struct cfm *cfm = tiny.flow.state;
  const int64_t count = TINY_VOCABULARY * cfm->width;
  const struct moments ours = open_moments(count), literal = open_moments(count);
  double *gradient = calloc((size_t)count, sizeof *gradient);
  assert_non_null(gradient);
  assert_true(cfm->width < TINY_VOCABULARY);
  for (uint32_t step = 1; step <= DRAWS; step++) {
    struct flow_batch batch = tiny.batch;
    batch.step = step;
    in_table_width(&tiny, &batch);
    add_draw(ours, cfm->model.table->gradient, count);
    memset(gradient, 0, (size_t)count * sizeof *gradient);
    in_vocabulary(&tiny, &batch, gradient);
    add_draw(literal, gradient, count);
  }
  compare(ours, literal, count);
  free(gradient);
  close_moments(ours);
  close_moments(literal);
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_agree_in_the_mean)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
