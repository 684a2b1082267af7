/* The objective of the text autoencoder in double, dropout on, against central differences. */
#include "tests/common/gradient.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

static struct value *build(void *context, struct tape *tape, struct value *const *inputs,
                           double *objective) {
  struct tiny_flow *tiny = context;
  struct flow_losses losses;
  double weight[FLOW_PARTS];
  (void)inputs;
  tiny->flow.kind->weights(&tiny->flow, &tiny->batch, weight);
  assert_ok(tiny->flow.kind->loss(&tiny->flow, tape, &tiny->batch, weight, &losses));
  if (arena_is_measuring(tape->arena)) return NULL;
  assert_true(losses.weight[0] == weight[0]);
  *objective += losses.sum[0] / weight[0];
  return NULL;
}

static void check(double tokens, double latents) {
  struct tiny_flow tiny;
  tiny_flow_options(&tiny);
  tiny.options.ae_token_dropout = tokens;
  tiny.options.ae_latent_dropout = latents;
  tiny_flow_open(&tiny, &flow_autoencoder);
  gradient_check(&(struct gradient_case){
      .build = build, .context = &tiny, .params = &tiny.params, .step = 1e-4});
  tiny_flow_close(&tiny);
}

static void plain(void **state) {
  (void)state;
  check(0, 0);
}

static void with_dropout(void **state) {
  (void)state;
  check(0.3, 0.6);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(with_dropout)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
