/* The whole objective of T5 in double, against central differences; rows that do not depend on
 * their neighbours, dropout included. */
#include <math.h>

#include "tests/common/gradient.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

static struct value *build_loss(void *context, struct tape *tape, struct value *const *inputs,
                                double *objective) {
  struct tiny_flow *tiny = context;
  struct flow_losses losses;
  double weight[FLOW_PARTS] = {0};
  (void)inputs;
  flow_t5.weights(&tiny->flow, &tiny->batch, weight);
  assert_ok(flow_t5.loss(&tiny->flow, tape, &tiny->batch, weight, &losses));
  if (arena_is_measuring(tape->arena)) return NULL;
  for (int part = 0; flow_t5.parts[part]; part++) {
    assert_true(losses.weight[part] == weight[part]);
    if (weight[part] > 0) *objective += losses.sum[part] / weight[part];
  }
  return NULL;
}

static void open_tiny(struct tiny_flow *tiny) {
  tiny_flow_options(tiny);
  tiny->options.t5_noise = 0.4;
  tiny->options.t5_span = 1;
}

static void check(struct tiny_flow *tiny) {
  tiny_flow_open(tiny, &flow_t5);
  gradient_check(&(struct gradient_case){
      .build = build_loss, .context = tiny, .params = &tiny->params, .step = 1e-5});
  tiny_flow_close(tiny);
}

static void head_of_its_own(void **state) {
  (void)state;
  struct tiny_flow tiny;
  open_tiny(&tiny);
  tiny.options.z_loss = tiny.options.label_smoothing = 0.1;
  check(&tiny);
}

static void shared_head_and_dropout(void **state) {
  (void)state;
  struct tiny_flow tiny;
  open_tiny(&tiny);
  tiny.options.t5_shared_head = true;
  tiny.options.t5_decoder_depth = 1;
  tiny.options.t5_dropout = 0.2;
  check(&tiny);
}

static void recomputed(void **state) {
  (void)state;
  struct tiny_flow tiny;
  open_tiny(&tiny);
  tiny.options.t5_dropout = 0.2;
  tiny.options.recompute = true;
  check(&tiny);
}

/* R-DLM-1: the loss of a batch is the sum over its rows, each alone. */
static void rows_do_not_depend_on_neighbours(void **state) {
  (void)state;
  struct tiny_flow tiny;
  double total[FLOW_PARTS] = {1}, sum = 0;
  open_tiny(&tiny);
  tiny.options.t5_dropout = 0.2;
  tiny_flow_open(&tiny, &flow_t5);
  tiny_flow_bind(&tiny);
  const double all = tiny_flow_loss(&tiny, &tiny.batch, total, false).sum[0];
  for (int64_t row = 0; row < TINY_ROWS; row++) {
    const struct flow_batch alone = tiny_flow_row(&tiny, row);
    sum += tiny_flow_loss(&tiny, &alone, total, false).sum[0];
  }
  assert_true(all > 0 && fabs(sum - all) < 1e-12 * all);
  tiny_flow_close(&tiny);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(head_of_its_own), cmocka_unit_test(shared_head_and_dropout),
      cmocka_unit_test(recomputed), cmocka_unit_test(rows_do_not_depend_on_neighbours)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
