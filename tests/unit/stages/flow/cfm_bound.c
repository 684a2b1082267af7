/* The likelihood bound against known values: one uniform token and its true posterior (the numbers
 * were found by another implementation), the whole vocabulary at once, and a step by hand. */
#include "stages/flow/cfm_bound.h"

#include <math.h>
#include <stdlib.h>

#include "pipeline/base/random.h"
#include "stages/flow/cfm_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

/* What one draw of the state says of the token, id 0: psi of it and the sum of squares. */
struct posterior {
  double probability, squares, log_probability;
  double shifted; /* log sum_v psi_v exp(s (xi_v - xi_0) - s^2 [v != 0]) with noise of its own */
};

static struct posterior draw(double r, double s, int64_t V, float *normals, uint64_t sample) {
  const struct random_stream stream = random_open(1, "posterior", sample, 0);
  struct posterior drawn = {0};
  double sum = 0, squares = 0, top = 0, shifted = 0;
  random_fill_normal(normals, 2 * V, stream, 0);
  normals[0] += (float)r;
  for (int64_t v = 0; v < V; v++) top = fmax(top, r * (double)normals[v]);
  for (int64_t v = 0; v < V; v++) {
    const double weight = exp(r * (double)normals[v] - top);
    sum += weight;
    squares += weight * weight;
    shifted += weight * exp(s * (double)(normals[V + v] - normals[V]) - (v ? s * s : 0));
  }
  drawn.log_probability = r * (double)normals[0] - top - log(sum);
  drawn.probability = exp(drawn.log_probability);
  drawn.squares = squares / (sum * sum);
  drawn.shifted = log(shifted / sum);
  return drawn;
}

struct bounds {
  double gaussian, jensen, best, mixture;
};

/* Adds one step's means over `draws` draws of the state. */
static void add_step(struct bounds *bounds, double ratio, double gap, int64_t V, int draws,
                     float *normals, int64_t step) {
  double gaussian = 0, jensen = 0, mixture = 0;
  for (int i = 0; i < draws; i++) {
    const struct posterior drawn =
        draw(sqrt(ratio), sqrt(gap), V, normals, (uint64_t)(step * draws + i));
    const double distance = drawn.squares - 2 * drawn.probability + 1;
    gaussian += cfm_bound_gaussian(gap, distance) / draws;
    jensen += cfm_bound_jensen(gap, drawn.probability) / draws;
    mixture -= drawn.shifted / draws;
  }
  bounds->gaussian += gaussian;
  bounds->jensen += jensen;
  bounds->best += fmin(gaussian, jensen);
  bounds->mixture += mixture;
}

static struct bounds bound_of_uniform(int64_t V, int64_t steps, int draws, bool information) {
  struct cfm_schedule *schedule = malloc(sizeof *schedule);
  float *normals = malloc((size_t)(2 * V) * sizeof *normals);
  struct bounds bounds = {0};
  double ratio[65];
  assert_true(steps <= 64);
  cfm_schedule_init(schedule, V, 0.75, 1);
  cfm_bound_grid(ratio, schedule, steps, information);
  for (int64_t k = 0; k < steps; k++) {
    assert_true(ratio[k] < ratio[k + 1]);
    add_step(&bounds, ratio[k], ratio[k + 1] - ratio[k], V, draws, normals, k);
  }
  double last = 0;
  const double r = sqrt(ratio[steps]);
  for (int i = 0; i < draws; i++)
    last -= draw(r, 0, V, normals, (uint64_t)(steps * draws + i)).log_probability / draws;
  free(normals);
  free(schedule);
  return (struct bounds){bounds.gaussian + last, bounds.jensen + last, bounds.best + last,
                         bounds.mixture + last};
}

/* Bounds on ln V for lambda 3/4: vocabulary, steps; gaussian, jensen, the better of both at every
 * step; and what chance allows. */
static void one_uniform_token(void **state) {
  (void)state;
  static const struct {
    int64_t V, steps;
    int draws;
    double gaussian, jensen, best, mixture, error;
  } known[] = {{256, 4, 3000, 8.09, 8.70, 5.97, 5.57, 0.15},
               {256, 16, 3000, 6.49, 10.23, 6.18, 5.60, 0.15},
               {256, 64, 800, 5.76, 10.82, 5.76, 5.57, 0.15},
               {4096, 16, 300, 9.54, 15.05, 9.01, 8.06, 0.5}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const struct bounds bounds =
        bound_of_uniform(known[i].V, known[i].steps, known[i].draws, false);
    print_message("# V %d, %d steps: gaussian %.3f, jensen %.3f, best %.3f, mixture %.3f\n",
                  (int)known[i].V, (int)known[i].steps, bounds.gaussian, bounds.jensen, bounds.best,
                  bounds.mixture);
    assert_true(fabs(bounds.gaussian - known[i].gaussian) < known[i].error);
    assert_true(fabs(bounds.jensen - known[i].jensen) < known[i].error);
    assert_true(fabs(bounds.best - known[i].best) < known[i].error);
    assert_true(fabs(bounds.mixture - known[i].mixture) < known[i].error);
  }
}

/* The gaussian form, whose error is that of its grid, comes nearer to the truth, and stays above.
 */
static void grid_by_information_is_tighter(void **state) {
  (void)state;
  static const struct {
    int64_t V, steps;
    int draws;
    double most; /* times ln V */
  } known[] = {{27, 16, 2000, 1.1}, {256, 16, 800, 1.08}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const double truth = log((double)known[i].V);
    const double even =
        bound_of_uniform(known[i].V, known[i].steps, known[i].draws, false).gaussian;
    const double spaced =
        bound_of_uniform(known[i].V, known[i].steps, known[i].draws, true).gaussian;
    print_message("# V %d, %d steps: even %.3f, by information %.3f of ln V\n", (int)known[i].V,
                  (int)known[i].steps, even / truth, spaced / truth);
    assert_true(spaced > 0.985 * truth && spaced < known[i].most * truth && spaced < even);
  }
}

enum { STEPS = 5, DRAWS = 2, PLACES = STEPS + 1, TERMS = TINY_ROWS * FLOW_BOUNDS * PLACES };

static void start(struct tiny_flow *tiny) {
  tiny_flow_options(tiny);
  tiny->options.cfm_condition = 4;
  tiny_flow_open(tiny, &flow_cfm);
  tiny_flow_bind(tiny);
  assert_ok(flow_cfm.prepare(&tiny->flow));
}

static void run(struct tiny_flow *tiny, struct flow_bound_request request, double *terms) {
  struct tape tape;
  arena_reset(&tiny->values, 0);
  arena_reset(&tiny->records, 0);
  tape_init(&tape, &tiny->kernels, &tiny->values, &tiny->records);
  tape.recording = tape.training = false;
  request.draws = DRAWS;
  request.steps = STEPS;
  request.mixture = true;
  assert_ok(flow_cfm.bound(&tiny->flow, &tape, &request, terms));
}

static double total(const double *terms, int64_t row, int form) {
  double sum = 0;
  for (int k = 0; k < PLACES; k++) sum += terms[(row * FLOW_BOUNDS + form) * PLACES + k];
  return sum;
}

static void what_the_network_sees_is_never_looser(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double terms[TERMS];
  start(&tiny);
  run(&tiny, (struct flow_bound_request){.batch = &tiny.batch}, terms);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    for (int k = 0; k < PLACES; k++) {
      const double *term = terms + row * FLOW_BOUNDS * PLACES + k;
      assert_true(term[BOUND_EMBEDDED * PLACES] <= term[BOUND_GAUSSIAN * PLACES] * (1 + 1e-6));
      assert_true(term[BOUND_EMBEDDED * PLACES] > 0);
    }
    assert_true(total(terms, row, BOUND_EMBEDDED) < 0.95 * total(terms, row, BOUND_GAUSSIAN));
  }
  tiny_flow_close(&tiny);
}

static void row_does_not_depend_on_its_batch(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double together[TERMS], alone[TERMS];
  start(&tiny);
  run(&tiny, (struct flow_bound_request){.batch = &tiny.batch}, together);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct flow_batch batch = tiny_flow_row(&tiny, row);
    run(&tiny, (struct flow_bound_request){.batch = &batch}, alone);
    for (int i = 0; i < FLOW_BOUNDS * PLACES; i++)
      assert_true(fabs(alone[i] - together[row * FLOW_BOUNDS * PLACES + i]) <
                  1e-9 * (1 + fabs(alone[i])));
  }
  tiny_flow_close(&tiny);
}

/* A prefix costs nothing itself and is seen clean. */
static void prefix_is_given(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double all[TERMS], rest[TERMS];
  const int64_t prefix[TINY_ROWS] = {2, TINY_POSITIONS, 1};
  start(&tiny);
  run(&tiny, (struct flow_bound_request){.batch = &tiny.batch}, all);
  run(&tiny, (struct flow_bound_request){.batch = &tiny.batch, .prefix = prefix}, rest);
  for (int form = 0; form < FLOW_BOUNDS; form++) {
    assert_true(total(rest, 1, form) == 0);
    assert_true(total(rest, 0, form) > 0 && total(rest, 0, form) < total(all, 0, form));
  }
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_uniform_token), cmocka_unit_test(grid_by_information_is_tighter),
      cmocka_unit_test(what_the_network_sees_is_never_looser),
      cmocka_unit_test(row_does_not_depend_on_its_batch), cmocka_unit_test(prefix_is_given)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
