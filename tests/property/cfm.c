/* Laws of categorical flows: independence of batch neighbours, true counts, fixed noise of
 * validation, stratified times (R-DLM-1, R-DLM-2, R-DLM-3, R-DLM-12). */
#include <math.h>
#include <string.h>

#include "stages/flow/cfm_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

static void start(struct tiny_flow *tiny) {
  tiny_flow_options(tiny);
  tiny->options.cfm_condition = 4;
  tiny_flow_open(tiny, &flow_cfm);
  tiny_flow_bind(tiny);
  assert_ok(flow_cfm.prepare(&tiny->flow));
}

static void row_does_not_depend_on_its_batch(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double total[FLOW_PARTS], sum = 0, weight = 0;
  start(&tiny);
  flow_cfm.weights(&tiny.flow, &tiny.batch, total);
  const struct flow_losses whole = tiny_flow_loss(&tiny, &tiny.batch, total, false);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct flow_batch batch = tiny_flow_row(&tiny, row);
    const struct flow_losses part = tiny_flow_loss(&tiny, &batch, total, false);
    sum += part.sum[0];
    weight += part.weight[0];
  }
  assert_true(weight > 0 && weight == whole.weight[0] && weight == total[0]);
  assert_true(fabs(sum - whole.sum[0]) < 1e-9 * whole.sum[0]);
  tiny_flow_close(&tiny);
}

enum { TEXTS = 5, CALLS = 4 };

static void text_does_not_depend_on_its_batch(void **state) {
  (void)state;
  struct tiny_flow tiny;
  int32_t together[TEXTS * TINY_POSITIONS], alone[TINY_POSITIONS];
  start(&tiny);
  tiny_flow_sample(&tiny, together, 0, TEXTS, CALLS);
  for (int i = 0; i < TEXTS; i++) {
    tiny_flow_sample(&tiny, alone, i, 1, CALLS);
    assert_memory_equal(alone, together + i * TINY_POSITIONS, sizeof alone);
  }
  tiny_flow_close(&tiny);
}

/* With lambda 0 alpha is the time itself: one row in each of as many strata. */
static void times_are_stratified_over_the_set(void **state) {
  (void)state;
  struct tiny_flow tiny;
  tiny_flow_options(&tiny);
  tiny.options.cfm_lambda = 0;
  tiny.options.cfm_condition = 4;
  tiny_flow_open(&tiny, &flow_cfm);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct cfm_row drawn = cfm_draw_row(&tiny.flow, &tiny.batch, row);
    assert_true((int64_t)(drawn.from * TINY_ROWS) == row);
    assert_true(drawn.from == drawn.to && !drawn.jump);
  }
  tiny_flow_close(&tiny);
}

/* A flow that is being distilled, with as many jumps. */
static void open_jumps(struct tiny_flow *tiny, struct options *distill, double share,
                       double whole_share) {
  options_defaults(distill);
  distill->distill_share = share;
  distill->distill_whole_share = whole_share;
  tiny_flow_open(tiny, &flow_cfm);
  tiny->flow.distill = distill;
}

/* So are the lengths of jumps. */
static void jumps_are_stratified_over_the_set(void **state) {
  (void)state;
  struct tiny_flow tiny;
  struct options distill;
  tiny_flow_options(&tiny);
  tiny.options.cfm_lambda = 0;
  open_jumps(&tiny, &distill, 1, 0);
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct cfm_row drawn = cfm_draw_row(&tiny.flow, &tiny.batch, row);
    assert_true((int64_t)((drawn.to - drawn.from) * TINY_ROWS) == row);
    assert_true(drawn.jump && drawn.from >= 0 && drawn.to <= 1);
  }
  tiny_flow_close(&tiny);
}

/* Midway in alpha, or where a sampler of twice the calls stops: at alpha of the middle time. */
static void jumps_are_halved_where_asked(void **state) {
  (void)state;
  struct tiny_flow tiny;
  struct options distill;
  tiny_flow_options(&tiny);
  tiny.options.cfm_lambda = .75;
  open_jumps(&tiny, &distill, 1, 1);
  const struct cfm *cfm = tiny.flow.state;
  const double halfway = cfm_schedule_alpha(&cfm->schedule, .5);
  assert_true(fabs(halfway - .5) > .01);
  assert_true(cfm_draw_row(&tiny.flow, &tiny.batch, 0).middle == .5);
  distill.distill_middle = MIDDLE_TIME;
  assert_true(cfm_draw_row(&tiny.flow, &tiny.batch, 0).middle == halfway);
  distill.distill_whole_share = 0;
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct cfm_row drawn = cfm_draw_row(&tiny.flow, &tiny.batch, row);
    assert_true(drawn.from < drawn.middle && drawn.middle < drawn.to);
  }
  tiny_flow_close(&tiny);
}

static void validation_has_noise_of_its_own(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double total[FLOW_PARTS];
  start(&tiny);
  flow_cfm.weights(&tiny.flow, &tiny.batch, total);
  struct flow_batch batch = tiny.batch;
  batch.step = 0;
  const double training = tiny_flow_loss(&tiny, &batch, total, false).sum[0];
  batch.validation = true;
  const double first = tiny_flow_loss(&tiny, &batch, total, false).sum[0];
  const double again = tiny_flow_loss(&tiny, &batch, total, false).sum[0];
  assert_true(first == again);
  assert_true(first != training);
  tiny_flow_close(&tiny);
}

/* The shares of rows that jump, and of jumps that go the whole way. */
static void count_jumps(double share, double whole_share, int counts[2]) {
  enum { ROWS = 4000 };
  struct tiny_flow tiny;
  struct options distill;
  tiny_flow_options(&tiny);
  tiny.options.cfm_condition = 4;
  open_jumps(&tiny, &distill, share, whole_share);
  counts[0] = counts[1] = 0;
  for (int64_t i = 0; i < ROWS; i++) {
    struct flow_batch batch = tiny_flow_row(&tiny, 0);
    batch.samples = &i;
    const struct cfm_row drawn = cfm_draw_row(&tiny.flow, &batch, 0);
    const bool whole = drawn.from == 0 && drawn.to == 1;
    assert_true(drawn.jump ? drawn.from < drawn.to : drawn.from == drawn.to);
    counts[0] += drawn.jump;
    counts[1] += drawn.jump && whole;
  }
  tiny_flow_close(&tiny);
}

static void shares_of_jumps_are_as_asked(void **state) {
  (void)state;
  int counts[2];
  count_jumps(0, 1, counts);
  assert_true(counts[0] == 0);
  count_jumps(1, 1, counts);
  assert_true(counts[0] == 4000 && counts[1] == 4000);
  count_jumps(0.25, 0.125, counts); /* within five deviations */
  assert_in_range(counts[0], 1000 - 137, 1000 + 137);
  assert_in_range(counts[1], 125 - 55, 125 + 55);
}

enum { DRAWN = TEXTS * TINY_POSITIONS };

static void draw(struct tiny_flow *tiny, int32_t *tokens) {
  tiny_flow_sample(tiny, tokens, 0, TEXTS, CALLS);
}

static int same(const int32_t *a, const int32_t *b) {
  return !memcmp(a, b, DRAWN * sizeof *a);
}

static void steps_of_a_base_are_those_of_euler_and_of_a_distilled_one_maps(void **state) {
  (void)state;
  struct tiny_flow tiny;
  int32_t automatic[DRAWN], euler[DRAWN], map[DRAWN];
  start(&tiny);
  draw(&tiny, automatic);
  tiny.options.cfm_sampler = CFM_SAMPLER_EULER;
  draw(&tiny, euler);
  tiny.options.cfm_sampler = CFM_SAMPLER_MAP;
  draw(&tiny, map);
  assert_true(same(automatic, euler) && !same(automatic, map));
  tiny.flow.jumps = true;
  tiny.options.cfm_sampler = CFM_SAMPLER_AUTO;
  draw(&tiny, automatic);
  assert_true(same(automatic, map));
  tiny_flow_close(&tiny);
}

/* The first block is that of the whole text; then others follow, given those before. */
static void blocks_follow_one_another(void **state) {
  (void)state;
  struct tiny_flow tiny;
  int32_t whole[DRAWN], blocks[DRAWN];
  start(&tiny);
  draw(&tiny, whole);
  tiny.options.cfm_block = TINY_POSITIONS;
  draw(&tiny, blocks);
  assert_true(same(whole, blocks));
  tiny.options.cfm_block = 1;
  draw(&tiny, blocks);
  for (int i = 0; i < TEXTS; i++)
    assert_int_equal(blocks[i * TINY_POSITIONS], whole[i * TINY_POSITIONS]);
  assert_false(same(whole, blocks));
  tiny_flow_close(&tiny);
}

static void guidance_leaves_the_network_behind(void **state) {
  (void)state;
  struct tiny_flow tiny;
  int32_t plain[DRAWN], guided[DRAWN];
  start(&tiny);
  draw(&tiny, plain);
  tiny.options.cfm_guidance = 4;
  tiny.options.cfm_guidance_dropout = 0; /* the weaker network is the network */
  draw(&tiny, guided);
  assert_true(same(plain, guided));
  tiny.options.cfm_guidance_dropout = 0.5;
  draw(&tiny, guided);
  assert_false(same(plain, guided));
  tiny_flow_close(&tiny);
}

static void a_small_nucleus_is_the_most_likely_token(void **state) {
  (void)state;
  struct tiny_flow tiny;
  int32_t likely[DRAWN], nucleus[DRAWN];
  start(&tiny);
  tiny.options.temperature = 0;
  draw(&tiny, likely);
  tiny.options.temperature = 1;
  tiny.options.top_p = 1e-6;
  draw(&tiny, nucleus);
  assert_true(same(likely, nucleus));
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_of_jumps_are_as_asked),
      cmocka_unit_test(row_does_not_depend_on_its_batch),
      cmocka_unit_test(text_does_not_depend_on_its_batch),
      cmocka_unit_test(times_are_stratified_over_the_set),
      cmocka_unit_test(jumps_are_stratified_over_the_set),
      cmocka_unit_test(jumps_are_halved_where_asked),
      cmocka_unit_test(validation_has_noise_of_its_own),
      cmocka_unit_test(steps_of_a_base_are_those_of_euler_and_of_a_distilled_one_maps),
      cmocka_unit_test(blocks_follow_one_another),
      cmocka_unit_test(guidance_leaves_the_network_behind),
      cmocka_unit_test(a_small_nucleus_is_the_most_likely_token)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
