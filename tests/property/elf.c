/* Laws of ELF: times, samplers, and independence of batch neighbours (R-DLM-1, R-DLM-2, R-DLM-3,
 * R-DLM-12). */
#include <math.h>

#include "stages/flow/elf_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

static void open_tiny(struct tiny_flow *tiny) {
  tiny_flow_options(tiny);
  tiny->options.elf_decode_share = 0.4;
}

static void start(struct tiny_flow *tiny) {
  tiny_flow_open(tiny, &flow_elf);
  tiny_flow_bind(tiny);
}

/* ELF (arXiv 2605.10938): times are sigmoid(normal). */
static void times_have_the_published_quantiles(void **state) {
  (void)state;
  static const double table[][2] = {{.01, .034}, {.05, .056}, {.25, .115}, {.5, .182},
                                    {.75, .277}, {.95, .454}, {.99, .589}};
  struct options options;
  options_defaults(&options);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    assert_true(fabs(elf_time(&options, table[i][0]) - table[i][1]) < 6e-4);
}

static void grids_rise_from_noise_to_data(void **state) {
  (void)state;
  struct options options;
  double times[33];
  options_defaults(&options);
  for (int grid = GRID_RANDOM; grid <= GRID_UNIFORM; grid++) {
    options.elf_grid = (enum grid_choice)grid;
    elf_grid(times, 32, &options, &options, 1);
    assert_true(times[0] == 0 && times[32] == 1);
    for (int k = 0; k < 32; k++) assert_true(times[k] < times[k + 1]);
    assert_true(fabs(times[16] - (grid == GRID_UNIFORM ? 0.5 : 0.182)) < (grid ? 1e-3 : 0.08));
  }
}

static void last_step_gives_the_prediction(void **state) {
  (void)state;
  float z[3] = {0.3f, -7, 1e-3f};
  const float x[3] = {0.1f, 0.7f, -1.0f / 3};
  elf_step(z, x, 3, 0.53, 1);
  assert_memory_equal(z, x, sizeof x);
}

static void no_gamma_changes_no_bit(void **state) {
  (void)state;
  float z[4] = {0.3f, -7, 0, 1.0f / 3};
  const float before[4] = {0.3f, -7, 0, 1.0f / 3};
  const struct random_stream stream = random_open(1, "x", 0, 0);
  assert_true(elf_renoise(z, 4, 0.2, 0.5, 0, 2, stream) == 0.2);
  assert_memory_equal(z, before, sizeof z);
  assert_true(elf_renoise(z, 4, 0.2, 0.5, 1, 2, stream) == 0.7 * 0.2);
  assert_memory_not_equal(z, before, sizeof z);
}

enum { TEXTS = 6, CALLS = 6 };

static void sde_without_gamma_is_ode(void **state) {
  (void)state;
  struct tiny_flow tiny;
  int32_t ode[TEXTS * TINY_POSITIONS], sde[TEXTS * TINY_POSITIONS], noisy[TEXTS * TINY_POSITIONS];
  open_tiny(&tiny);
  start(&tiny);
  tiny_flow_sample(&tiny, ode, 0, TEXTS, CALLS);
  tiny.options.sampler = SAMPLER_SDE;
  tiny_flow_sample(&tiny, noisy, 0, TEXTS, CALLS);
  tiny.options.elf_gamma = 0;
  tiny_flow_sample(&tiny, sde, 0, TEXTS, CALLS);
  assert_memory_equal(ode, sde, sizeof ode);
  assert_memory_not_equal(ode, noisy, sizeof ode);
  tiny_flow_close(&tiny);
}

static void text_does_not_depend_on_its_batch(void **state) {
  (void)state;
  struct tiny_flow tiny;
  int32_t together[TEXTS * TINY_POSITIONS], alone[TINY_POSITIONS];
  open_tiny(&tiny);
  start(&tiny);
  tiny.options.sampler = SAMPLER_SDE;
  tiny_flow_sample(&tiny, together, 0, TEXTS, CALLS);
  for (int i = 0; i < TEXTS; i++) {
    tiny_flow_sample(&tiny, alone, i, 1, CALLS);
    assert_memory_equal(alone, together + i * TINY_POSITIONS, sizeof alone);
  }
  tiny_flow_close(&tiny);
}

static void row_does_not_depend_on_its_batch(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double total[FLOW_PARTS], sum[2] = {0}, weight[2] = {0};
  open_tiny(&tiny);
  start(&tiny);
  tiny.flow.kind->weights(&tiny.flow, &tiny.batch, total);
  const struct flow_losses whole = tiny_flow_loss(&tiny, &tiny.batch, total, false);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct flow_batch batch = tiny_flow_row(&tiny, row);
    const struct flow_losses part = tiny_flow_loss(&tiny, &batch, total, false);
    for (int i = 0; i < 2; i++) {
      sum[i] += part.sum[i];
      weight[i] += part.weight[i];
    }
  }
  for (int i = 0; i < 2; i++) {
    assert_true(whole.weight[i] > 0 && weight[i] == whole.weight[i] && weight[i] == total[i]);
    assert_true(fabs(sum[i] - whole.sum[i]) < 1e-9 * whole.sum[i]);
  }
  tiny_flow_close(&tiny);
}

static void validation_has_noise_of_its_own(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double total[FLOW_PARTS];
  open_tiny(&tiny);
  start(&tiny);
  tiny.flow.kind->weights(&tiny.flow, &tiny.batch, total);
  struct flow_batch batch = tiny.batch;
  batch.step = 0;
  const struct flow_losses training = tiny_flow_loss(&tiny, &batch, total, false);
  batch.validation = true;
  const struct flow_losses first = tiny_flow_loss(&tiny, &batch, total, false);
  const struct flow_losses again = tiny_flow_loss(&tiny, &batch, total, false);
  for (int i = 0; i < 2; i++) assert_true(first.sum[i] == again.sum[i]);
  assert_true(first.sum[0] != training.sum[0]);
  tiny_flow_close(&tiny);
}

/* Data N(1, 0.5^2) for one number: E[x | z] is known, and so is where the flow ends. */
static double gaussian_error(int steps) {
  const double mean = 1, deviation = 0.5, sigma = 2, start = 1.3;
  float z = (float)(sigma * start);
  for (int k = 0; k < steps; k++) {
    const double t = (double)k / steps, signal = t * deviation, noise = (1 - t) * sigma;
    const double share = t * deviation * deviation / (signal * signal + noise * noise);
    const float x = (float)(mean + share * ((double)z - t * mean));
    elf_step(&z, &x, 1, t, (double)(k + 1) / steps);
  }
  return fabs((double)z - (mean + deviation * start));
}

static void ode_converges_with_order_one(void **state) {
  (void)state;
  /* 20 steps at most: beyond, the smallest gap of 0.05 would shorten the last step */
  const double coarse = gaussian_error(10), fine = gaussian_error(20);
  assert_true(fine < 0.1 && coarse / fine > 1.7 && coarse / fine < 2.4);
}

static void too_few_calls_are_refused(void **state) {
  (void)state;
  struct tiny_flow tiny;
  struct tape tape;
  int32_t tokens[TINY_POSITIONS];
  open_tiny(&tiny);
  start(&tiny);
  tape_init(&tape, &tiny.kernels, &tiny.values, &tiny.records);
  struct flow_request request = {
      .count = 1, .positions = TINY_POSITIONS, .nfe = 1, .options = &tiny.options};
  assert_status(STATUS_MISMATCH, elf_sample(&tiny.flow, &tape, &request, tokens));
  request.nfe = 4;
  request.prefix = tokens;
  request.prefix_length = 1;
  assert_status(STATUS_MISMATCH, elf_sample(&tiny.flow, &tape, &request, tokens));
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(times_have_the_published_quantiles),
                                     cmocka_unit_test(grids_rise_from_noise_to_data),
                                     cmocka_unit_test(last_step_gives_the_prediction),
                                     cmocka_unit_test(no_gamma_changes_no_bit),
                                     cmocka_unit_test(sde_without_gamma_is_ode),
                                     cmocka_unit_test(text_does_not_depend_on_its_batch),
                                     cmocka_unit_test(row_does_not_depend_on_its_batch),
                                     cmocka_unit_test(validation_has_noise_of_its_own),
                                     cmocka_unit_test(ode_converges_with_order_one),
                                     cmocka_unit_test(too_few_calls_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
