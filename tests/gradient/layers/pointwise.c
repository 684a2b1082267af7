/* Derivatives of activations, gated pairs, modulation, dropout and mean squared error. */
#include "stages/model/layers/dropout.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/modulate.h"
#include "stages/model/layers/mse.h"
#include "stages/model/layers/time_embedding.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"

static struct value *activated(void *context, struct tape *tape, struct value *const *inputs,
                               double *objective) {
  (void)objective;
  return feedforward_activation(tape, inputs[0], *(const enum activation *)context);
}

static struct value *gated(void *context, struct tape *tape, struct value *const *inputs,
                           double *objective) {
  (void)objective;
  return feedforward_gated(tape, inputs[0], *(const enum activation *)context);
}

static void activations(void **state) {
  (void)state;
  enum activation kinds[] = {ACTIVATION_RELU, ACTIVATION_GELU, ACTIVATION_SILU};
  for (int i = 0; i < 3; i++) {
    gradient_check(&(struct gradient_case){
        .build = activated, .context = &kinds[i], .inputs = {{3, 8}}, .step = 1e-4});
    gradient_check(&(struct gradient_case){
        .build = gated, .context = &kinds[i], .inputs = {{3, 8}}, .step = 1e-4});
  }
}

/* Three parts of one condition matrix, as AdaLN-Zero uses it. */
static struct value *modulated(void *context, struct tape *tape, struct value *const *inputs,
                               double *objective) {
  (void)context, (void)objective;
  struct value *parts[3];
  for (int i = 0; i < 3; i++) parts[i] = tape_columns(tape, inputs[1], 4 * i, 4);
  struct value *branch = modulate_forward(tape, inputs[0], parts[0], parts[1], 3);
  return modulate_gate(tape, inputs[0], branch, parts[2], 3);
}

static void modulation(void **state) {
  (void)state;
  gradient_check(&(struct gradient_case){.build = modulated, .inputs = {{6, 4}, {2, 12}}});
}

static struct value *dropped(void *context, struct tape *tape, struct value *const *inputs,
                             double *objective) {
  (void)objective;
  return dropout_forward(tape, inputs[0], 0.4, context, 3);
}

static void dropout_repeats_its_draws(void **state) {
  (void)state;
  struct random_stream streams[] = {random_open(1, "drop", 0, 0), random_open(1, "drop", 1, 0)};
  gradient_check(
      &(struct gradient_case){.build = dropped, .context = streams, .inputs = {{6, 10}}});
}

/* R-ORD-5: the same sample is dropped alike whatever stands beside it. */
static void dropout_does_not_see_neighbours(void **state) {
  (void)state;
  struct random_stream streams[] = {random_open(1, "drop", 5, 0), random_open(1, "drop", 9, 0)};
  double both[60], alone[30];
  gradient_compute(
      &(struct gradient_case){.build = dropped, .context = streams, .inputs = {{6, 10}}}, both);
  gradient_compute(
      &(struct gradient_case){.build = dropped, .context = streams + 1, .inputs = {{3, 10}}},
      alone);
  int zeros = 0;
  for (int i = 0; i < 30; i++) {
    assert_true((both[30 + i] == 0) == (alone[i] == 0));
    zeros += alone[i] == 0;
  }
  assert_in_range(zeros, 4, 22);
}

static struct value *squared_error(void *context, struct tape *tape, struct value *const *inputs,
                                   double *objective) {
  static const float target[12] = {1, -1, 0.5f, 2, 3, 0, 0, 1, -2, 1, 1, 1};
  static const float weight[3] = {0.5f, 0, 2};
  double loss[3] = {0};
  (void)context;
  mse_forward(tape, loss, inputs[0], tape_input(tape, target, 3, 4), weight);
  for (int i = 0; i < 3; i++) *objective += (double)weight[i] * loss[i];
  return NULL;
}

static void mean_squared_error(void **state) {
  (void)state;
  gradient_check(&(struct gradient_case){.build = squared_error, .inputs = {{3, 4}}});
}

static struct value *timed(void *context, struct tape *tape, struct value *const *inputs,
                           double *objective) {
  (void)objective;
  struct value *condition = time_embedding_forward(tape, context, 2, 4, 10000);
  return modulate_gate(tape, inputs[0], inputs[0], condition, 3);
}

static void time_embedding_is_a_constant(void **state) {
  (void)state;
  double times[] = {0.25, 0.75};
  gradient_check(&(struct gradient_case){.build = timed, .context = times, .inputs = {{6, 4}}});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(activations),
      cmocka_unit_test(modulation),
      cmocka_unit_test(dropout_repeats_its_draws),
      cmocka_unit_test(dropout_does_not_see_neighbours),
      cmocka_unit_test(mean_squared_error),
      cmocka_unit_test(time_embedding_is_a_constant),
  };
  return cmocka_run_group_tests_name("derivatives of pointwise layers", tests, NULL, NULL);
}
