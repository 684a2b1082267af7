/* Identities of flow maps as teachers: they hold for a flow map that is known, they ask for nothing
 * where predictions are constant, and the exact derivative is the limit of the difference.
 */
#include <math.h>
#include <string.h>

#include "stages/flow/cfm_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

enum { V = 3, PIECES = 1000 };

static const double shares[V] = {.5, .2, .3};

/* The posterior of one token drawn with these shares, at state z = s x + (1 - s) noise. */
static void posterior(double *psi, const double *z, double s) {
  double sum = 0;
  for (int v = 0; v < V; v++) sum += psi[v] = shares[v] * exp(s * z[v] / ((1 - s) * (1 - s)));
  for (int v = 0; v < V; v++) psi[v] /= sum;
}

static void velocity(double *slope, const double *z, double u) {
  posterior(slope, z, u);
  for (int v = 0; v < V; v++) slope[v] = (slope[v] - z[v]) / (1 - u);
}

/* Where the flow takes z from time s to t: Runge and Kutta's method. */
static void follow(double *x, const double *z, double s, double t) {
  const double h = (t - s) / PIECES;
  memcpy(x, z, V * sizeof *x);
  for (int i = 0; i < PIECES; i++) {
    double k[4][V], y[V];
    static const double reach[4] = {0, .5, .5, 1}, weight[4] = {1, 2, 2, 1};
    for (int stage = 0; stage < 4; stage++) {
      for (int v = 0; v < V; v++) y[v] = x[v] + (stage ? reach[stage] * h * k[stage - 1][v] : 0);
      velocity(k[stage], y, s + (i + reach[stage]) * h);
    }
    for (int stage = 0; stage < 4; stage++)
      for (int v = 0; v < V; v++) x[v] += h / 6 * weight[stage] * k[stage][v];
  }
}

/* log psi_{s,t}(z), and the end of the jump. */
static void jump(double *log_psi, double *x, const double *z, double s, double t) {
  follow(x, z, s, t);
  for (int v = 0; v < V; v++) log_psi[v] = log(((1 - s) * x[v] - (1 - t) * z[v]) / (t - s));
}

/* Bends the logarithms of a posterior as the head does, and compares with psi_{s,t}. */
static void assert_bent(double *teacher, const double *log_psi, const double *rates, double a,
                        double b) {
  struct kernels kernels;
  double mean = 0, top = 0;
  assert_ok(kernels_open(&kernels, "reference", DTYPE_F64));
  for (int v = 0; v < V; v++) {
    teacher[v] = log(teacher[v]);
    mean += exp(log_psi[v]) * rates[v];
  }
  kernels.bend_tile(teacher, rates, &mean, &a, &b, 1, V);
  for (int v = 0; v < V; v++) top += exp(teacher[v]);
  for (int v = 0; v < V; v++) assert_near(exp(teacher[v]) / top, exp(log_psi[v]), 1e-6);
}

static const double states[2][V] = {{.3, -.2, .5}, {-1, .7, .1}};
static const double pairs[3][2] = {{.1, .5}, {.3, .45}, {.35, .6}};

static void eulerian_identity_holds_for_a_known_flow(void **state) {
  (void)state;
  const double h = 1e-4;
  for (int i = 0; i < 6; i++) {
    const double *z = states[i % 2], s = pairs[i / 2][0], t = pairs[i / 2][1];
    double psi[V], log_psi[V], x[V], rates[V] = {0};
    posterior(psi, z, s);
    for (int side = -1; side <= 1; side += 2) {
      double moved[V], there[V];
      for (int v = 0; v < V; v++) moved[v] = z[v] + side * h * (psi[v] - z[v]);
      jump(there, x, moved, s + side * h * (1 - s), t);
      for (int v = 0; v < V; v++) rates[v] += side * there[v] / (2 * h);
    }
    jump(log_psi, x, z, s, t);
    assert_bent(psi, log_psi, rates, 1 - t, t - s);
  }
}

static void lagrangian_identity_holds_for_a_known_flow(void **state) {
  (void)state;
  const double h = 1e-5;
  for (int i = 0; i < 6; i++) {
    const double *z = states[i % 2], s = pairs[i / 2][0], t = pairs[i / 2][1];
    double psi[V], log_psi[V], x[V], rates[V] = {0};
    for (int side = -1; side <= 1; side += 2) {
      double there[V];
      jump(there, x, z, s, t + side * h);
      for (int v = 0; v < V; v++) rates[v] += side * there[v] / (2 * h);
    }
    jump(log_psi, x, z, s, t);
    posterior(psi, x, t);
    assert_bent(psi, log_psi, rates, 1, -(t - s) * (1 - t) / (1 - s));
  }
}

static const enum identity_choice identities[] = {
    IDENTITY_SEMIGROUP, IDENTITY_EULERIAN, IDENTITY_EULERIAN_DIFFERENCE, IDENTITY_LAGRANGIAN};

static void start(struct tiny_flow *tiny) {
  tiny_flow_options(tiny);
  tiny->distills = true;
  tiny->options.cfm_condition = 4;
  tiny->distill.distill_share = 1;
  tiny->distill.distill_whole_share = 0;
  tiny_flow_open(tiny, &flow_cfm);
  tiny_flow_bind(tiny);
  assert_ok(flow_cfm.prepare(&tiny->flow));
}

static double loss_of(struct tiny_flow *tiny) {
  double total[FLOW_PARTS] = {0};
  flow_cfm.weights(&tiny->flow, &tiny->batch, total);
  return tiny_flow_loss(tiny, &tiny->batch, total, true).sum[1] / total[1];
}

static double largest_gradient(const struct tiny_flow *tiny) {
  double most = 0;
  for (int64_t i = 0; i < tiny->params.count; i++) {
    const struct param *param = tiny->params.items[i];
    const double *gradient = param->gradient;
    for (int64_t j = 0; gradient && j < param_count(param); j++)
      most = fmax(most, fabs(gradient[j]));
  }
  return most;
}

/* A head of zeros predicts the same for every state and time: every jump is exact already. */
static void constant_predictions_lose_nothing(void **state) {
  (void)state;
  struct tiny_flow tiny;
  start(&tiny);
  struct param *const heads[] = {params_find(&tiny.params, "head.weight"),
                                 params_find(&tiny.teacher, "head.weight")};
  for (int i = 0; i < 2; i++)
    memset(heads[i]->data, 0, (size_t)param_count(heads[i]) * sizeof(double));
  for (int i = 0; i < 4; i++) {
    tiny.distill.distill_loss = identities[i];
    assert_near(loss_of(&tiny), 0, 1e-12);
    assert_near(largest_gradient(&tiny), 0, 1e-6);
  }
  tiny_flow_close(&tiny);
}

/* With the same prediction two jumps end where one does. */
static void constant_predictions_make_an_exact_map(void **state) {
  (void)state;
  struct tiny_flow tiny;
  struct tape tape;
  float weight[] = {1, 1};
  double from[] = {.2}, middle[] = {.55}, to[] = {.9}, later[] = {.55};
  const float y[] = {1, -2, .5f, 3}, mean[] = {.1f, .2f, -.3f, .4f};
  struct cfm_jumps jumps = {.count = 1, .positions = 2, .from = from, .weight = weight};
  start(&tiny);
  tape_init(&tape, &tiny.kernels, &tiny.values, &tiny.records);
  struct value *state_of_y = tape_input(&tape, y, 2, 2), *target = tape_input(&tape, mean, 2, 2);
  struct value *whole = cfm_advance(&tape, &jumps, state_of_y, target, to);
  struct value *half = cfm_advance(&tape, &jumps, state_of_y, target, middle);
  jumps.from = later;
  struct value *rest = cfm_advance(&tape, &jumps, half, target, to);
  for (int i = 0; i < 4; i++)
    assert_near(((double *)rest->data)[i], ((double *)whole->data)[i], 1e-6);
  tiny_flow_close(&tiny);
}

static void exact_derivative_is_the_limit_of_differences(void **state) {
  (void)state;
  struct tiny_flow tiny;
  start(&tiny);
  tiny.distill.distill_loss = IDENTITY_EULERIAN;
  const double exact = loss_of(&tiny);
  tiny.distill.distill_loss = IDENTITY_EULERIAN_DIFFERENCE;
  tiny.distill.distill_step = 0.002;
  const double close = loss_of(&tiny);
  tiny.distill.distill_step = 0.2;
  const double far = loss_of(&tiny);
  assert_true(exact > 1e-4);
  assert_near(close, exact, 2e-3 * exact);
  assert_true(fabs(far - exact) > 4 * fabs(close - exact));
  tiny_flow_close(&tiny);
}

static void identities_differ(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double loss[4];
  start(&tiny);
  for (int i = 0; i < 4; i++) {
    tiny.distill.distill_loss = identities[i];
    loss[i] = loss_of(&tiny);
    assert_true(isfinite(loss[i]) && loss[i] > 0);
    for (int j = 0; j < i; j++) assert_true(loss[i] != loss[j]);
  }
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(eulerian_identity_holds_for_a_known_flow),
                                     cmocka_unit_test(lagrangian_identity_holds_for_a_known_flow),
                                     cmocka_unit_test(constant_predictions_lose_nothing),
                                     cmocka_unit_test(constant_predictions_make_an_exact_map),
                                     cmocka_unit_test(exact_derivative_is_the_limit_of_differences),
                                     cmocka_unit_test(identities_differ)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
