/* What self-conditioning and guidance cost in training ELF: a pass without gradients over the rows
 * that use their own prediction, and nothing else (methods of the paper's equation 3; its released
 * code runs the network up to four times). */
#include "tests/common/bench_step.h"
#include "tests/common/tap.h"

enum { ROWS = 8, POSITIONS = 16 };

/* Operations of one training step. */
static double step_flop(double self_conditioned, double guidance, double decoded) {
  struct bench_step_shape shape = {.kind = flow_find("elf"),
                                   .rows = ROWS,
                                   .positions = POSITIONS,
                                   .vocabulary = 64,
                                   .embedding_width = 8};
  options_defaults(&shape.options);
  shape.options.width = 32;
  shape.options.depth = 2;
  shape.options.heads = 2;
  shape.options.ema = 0;
  shape.options.elf_self_condition = self_conditioned;
  shape.options.elf_decode_share = decoded;
  shape.options.elf_guidance_min = guidance > 1 ? 0.5 : 1;
  shape.options.elf_guidance_max = guidance;
  return bench_step_run(&shape, 1).flop;
}

static void guidance_is_free(void **state) {
  (void)state;
  assert_true(step_flop(0, 5, 0) == step_flop(0, 1, 0));
  assert_true(step_flop(1, 5, 0) == step_flop(1, 1, 0));
  assert_true(step_flop(0.5, 5, 0.2) == step_flop(0.5, 1, 0.2));
}

/* A pass forwards is a third of a step; the first layer needs no gradient of its input. */
static void self_conditioning_is_one_pass(void **state) {
  (void)state;
  const double plain = step_flop(0, 5, 0), extra = step_flop(1, 5, 0) - plain;
  assert_in_range((long)(1000 * extra / plain), 333, 350);
}

/* Passes are counted in whole rows: so many of eight. */
static void only_rows_that_use_it_pay(void **state) {
  (void)state;
  const double plain = step_flop(0, 5, 0), all = step_flop(1, 5, 0);
  const double rows = ROWS * (step_flop(0.5, 5, 0) - plain) / (all - plain);
  const double whole = (double)(long)(rows + 0.5);
  assert_near(rows, whole, 1e-9);
  assert_true(whole > 0 && whole < ROWS);
}

static void decoded_rows_do_not_pay(void **state) {
  (void)state;
  assert_true(step_flop(1, 5, 1) == step_flop(0, 5, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(guidance_is_free),
      cmocka_unit_test(self_conditioning_is_one_pass),
      cmocka_unit_test(only_rows_that_use_it_pay),
      cmocka_unit_test(decoded_rows_do_not_pay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
