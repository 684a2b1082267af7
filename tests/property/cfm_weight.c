/* The weight of a token's loss in categorical flows: formula, mean, limit, and that a learned one
 * settles at the loss; the law of prefixes (R-DLM-2). */
#include <math.h>
#include <string.h>

#include "stages/flow/cfm_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

enum { N = TINY_ROWS * TINY_POSITIONS };

static const double distance[N] = {2, 1, .5, .25, .1, .01, .001, 0, 1.5, .3, .7, 1};
static const double times[TINY_ROWS] = {.2, .5, .8};

static void open_weights(struct tiny_flow *tiny) {
  tiny_flow_options(tiny);
  tiny->options.cfm_condition = 4;
}

/* Weights of all tokens but the last, whose weight is 0. */
static void weigh(struct tiny_flow *tiny, float *weight) {
  struct tape tape;
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  for (int i = 0; i < N; i++) weight[i] = i + 1 < N;
  cfm_weigh(&tiny->flow, &tape,
            &(struct cfm_weighing){.weight = weight,
                                   .distance = distance,
                                   .loss = distance,
                                   .from = times,
                                   .to = times,
                                   .rows = TINY_ROWS,
                                   .positions = TINY_POSITIONS,
                                   .power = 0.7,
                                   .constant = 0.01,
                                   .total = 10});
  assert_true(weight[N - 1] == 0);
}

static void adaptive_weight_follows_its_formula(void **state) {
  (void)state;
  struct tiny_flow tiny;
  float weight[N];
  open_weights(&tiny);
  tiny.options.cfm_weight_clip = 12;
  tiny_flow_open(&tiny, &flow_cfm);
  weigh(&tiny, weight);
  for (int i = 0; i + 1 < N; i++) {
    const double plain = pow(distance[i] + 0.01, -0.7);
    assert_near(10 * (double)weight[i], plain < 12 ? plain : 12, 1e-5);
  }
  assert_near(10 * (double)weight[7], 12, 1e-5);
  tiny_flow_close(&tiny);
}

static void normalised_weights_have_mean_one(void **state) {
  (void)state;
  struct tiny_flow tiny;
  float weight[N], plain[N];
  double mean = 0;
  open_weights(&tiny);
  tiny_flow_open(&tiny, &flow_cfm);
  weigh(&tiny, plain);
  tiny.options.cfm_weight_normalise = true;
  weigh(&tiny, weight);
  for (int i = 0; i < N; i++) mean += 10 * (double)weight[i] / (N - 1);
  assert_near(mean, 1, 1e-5);
  for (int i = 1; i + 1 < N; i++) /* ratios stay */
    assert_near(weight[i] / weight[0], plain[i] / plain[0], 1e-4);
  tiny_flow_close(&tiny);
}

/* Makes the learned weight its bias alone, and returns that. */
static struct param *only_bias(const struct tiny_flow *tiny) {
  const struct param *out = params_find(&tiny->params, "balance.out.weight");
  memset(out->data, 0, (size_t)param_count(out) * sizeof(double));
  return params_find(&tiny->params, "balance.out.bias");
}

/* At weight exp(-u) the slope of exp(-u) loss + u vanishes where u is the log of the mean loss. */
static void learned_weight_settles_at_the_loss(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double total[FLOW_PARTS];
  open_weights(&tiny);
  tiny.options.cfm_weight_power = 0;
  tiny.options.cfm_weight_learned = true;
  tiny_flow_open(&tiny, &flow_cfm);
  tiny_flow_bind(&tiny);
  assert_ok(flow_cfm.prepare(&tiny.flow));
  struct param *bias = only_bias(&tiny);
  flow_cfm.weights(&tiny.flow, &tiny.batch, total);
  const double mean = tiny_flow_loss(&tiny, &tiny.batch, total, false).sum[0] / total[0];
  for (int side = -1; side <= 1; side++) {
    params_clear_gradients(&tiny.params, DTYPE_F64);
    *(double *)bias->data = log(mean) + 0.1 * side;
    tiny_flow_loss(&tiny, &tiny.batch, total, true);
    assert_near(*(double *)bias->gradient, 1 - exp(-0.1 * side), 1e-6);
  }
  tiny_flow_close(&tiny);
}

enum { STEPS = 4000 };

/* Half of the rows have a prefix, of every length from 0 to one position short of all. */
static void prefixes_have_uniform_lengths(void **state) {
  (void)state;
  struct tiny_flow tiny;
  int64_t count[TINY_POSITIONS] = {0}, rows = 0;
  open_weights(&tiny);
  tiny_flow_open(&tiny, &flow_cfm);
  for (uint32_t step = 0; step < STEPS; step++) {
    tiny.batch.step = step;
    for (int64_t row = 0; row < TINY_ROWS; row++, rows++) {
      const struct cfm_row drawn = cfm_draw_row(&tiny.flow, &tiny.batch, row);
      assert_true(drawn.prefix >= 0 && drawn.prefix < TINY_POSITIONS);
      const int64_t left = tiny.lengths[row] - drawn.prefix;
      assert_true(drawn.covered == (left > 0 ? left : 0));
      count[drawn.prefix]++;
    }
  }
  for (int length = 1; length < TINY_POSITIONS; length++) /* expected share 1/8, deviation .003 */
    assert_near((double)count[length] / (double)rows, 0.5 / TINY_POSITIONS, 0.015);
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(adaptive_weight_follows_its_formula),
                                     cmocka_unit_test(normalised_weights_have_mean_one),
                                     cmocka_unit_test(learned_weight_settles_at_the_loss),
                                     cmocka_unit_test(prefixes_have_uniform_lengths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
