/* Forward derivatives of the layers of categorical flows against differences in double. */
#include "tests/common/jvp.h"
#include "stages/model/layers/attention.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/modulate.h"
#include "stages/model/layers/rmsnorm.h"
#include "stages/model/layers/rope.h"
#include "stages/model/layers/time_embedding.h"
#include "tests/common/tap.h"

enum { ROWS = 6, WIDTH = 8 };

struct setting {
  struct arena declarations, weights;
  struct params params;
  struct param *matrix, *bias, *gain;
};

static void open_setting(struct setting *setting) {
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  params_init(&setting->params, &setting->declarations);
  setting->matrix = params_add_matrix(&setting->params, 5, WIDTH, PARAM_XAVIER_UNIFORM, 1, "w");
  setting->bias = params_add_vector(&setting->params, 5, PARAM_ZERO, 0, "b");
  setting->gain = params_add_vector(&setting->params, WIDTH / 2, PARAM_ONE, 0, "g");
  jvp_bind(&setting->params, &setting->weights);
}

static void close_setting(struct setting *setting) {
  arena_free(&setting->weights);
  arena_free(&setting->declarations);
}

static struct value *build_linear(void *context, struct tape *tape, struct value *const *inputs,
                                  double shift) {
  const struct setting *setting = context;
  (void)shift; /* of a view */
  return linear_forward(tape, tape_columns(tape, inputs[0], 2, WIDTH), setting->matrix,
                        setting->bias);
}

static struct value *build_norm(void *context, struct tape *tape, struct value *const *inputs,
                                double shift) {
  const struct setting *setting = context;
  (void)shift;
  struct value *y =
      rmsnorm_forward(tape, tape_columns(tape, inputs[0], 1, WIDTH), setting->gain, 2, 1e-6);
  return rmsnorm_forward(tape, combine_add(tape, y, inputs[1]), NULL, 1, 1e-6);
}

static struct value *build_rope(void *context, struct tape *tape, struct value *const *inputs,
                                double shift) {
  static const int32_t places[ROWS] = {0, 1, 2, 0, 1, -1};
  (void)context, (void)shift;
  return rope_forward(tape, inputs[0],
                      &(struct rope){.heads = 2, .theta = 100, .positions = places});
}

static struct value *build_attention(void *context, struct tape *tape, struct value *const *inputs,
                                     double shift) {
  static const struct attention_range causal[] = {{0, 1, 0, 0}, {0, 2, 0, 0}, {0, 1, 2, 3}};
  const bool masked = *(const bool *)context;
  (void)shift;
  return attention_forward(tape, inputs[0], inputs[1], inputs[2],
                           &(struct attention){.batch = 2,
                                               .queries = 3,
                                               .keys = 3,
                                               .heads = 2,
                                               .head_dim = WIDTH / 2,
                                               .ranges = masked ? causal : NULL,
                                               .shared_ranges = true});
}

static struct value *build_feedforward(void *context, struct tape *tape,
                                       struct value *const *inputs, double shift) {
  const enum activation kind = *(const enum activation *)context;
  (void)shift;
  return feedforward_gated(tape, feedforward_activation(tape, inputs[0], kind), kind);
}

/* Shift, scale and gate are parts of one condition. */
static struct value *build_modulation(void *context, struct tape *tape, struct value *const *inputs,
                                      double shift) {
  struct value *parts[3];
  (void)context, (void)shift;
  for (int i = 0; i < 3; i++) parts[i] = tape_columns(tape, inputs[1], i * WIDTH, WIDTH);
  struct value *branch = modulate_forward(tape, inputs[0], parts[0], parts[1], 3);
  return modulate_gate(tape, inputs[0], branch, parts[2], 3);
}

static struct value *build_times(void *context, struct tape *tape, struct value *const *inputs,
                                 double shift) {
  static const double rates[ROWS] = {1, -1, 2, 0, .5, 3};
  double times[ROWS];
  (void)context, (void)inputs;
  for (int i = 0; i < ROWS; i++) times[i] = 0.15 * i + shift * rates[i];
  struct value *y = time_embedding_forward(tape, times, ROWS, WIDTH, 50);
  if (tape->moving) time_embedding_move(tape, y, times, rates, 50);
  return feedforward_activation(tape, y, ACTIVATION_SILU);
}

static void maps_and_norms(void **state) {
  (void)state;
  struct setting setting;
  open_setting(&setting);
  const struct jvp_case map = {.build = build_linear,
                               .context = &setting,
                               .inputs = {{ROWS, WIDTH + 3, false}},
                               .params = &setting.params};
  const struct jvp_case norm = {.build = build_norm,
                                .context = &setting,
                                .inputs = {{ROWS, WIDTH + 2, false}, {ROWS, WIDTH, true}},
                                .params = &setting.params};
  jvp_check(&map);
  jvp_check(&norm);
  close_setting(&setting);
}

static void rotations(void **state) {
  (void)state;
  jvp_check(&(struct jvp_case){.build = build_rope, .inputs = {{ROWS, WIDTH, false}}});
}

/* All three move, or one of them. */
static void attention_moves(void **state) {
  (void)state;
  for (int fixed = 0; fixed < 8; fixed++) {
    bool masked = fixed % 2;
    if (fixed == 7) continue;
    jvp_check(&(struct jvp_case){
        .build = build_attention,
        .context = &masked,
        .inputs = {{ROWS, WIDTH, fixed & 1}, {ROWS, WIDTH, fixed & 2}, {ROWS, WIDTH, fixed & 4}}});
  }
}

static void feedforward_moves(void **state) {
  (void)state;
  enum activation kinds[] = {ACTIVATION_GELU, ACTIVATION_SILU};
  for (int i = 0; i < 2; i++)
    jvp_check(&(struct jvp_case){
        .build = build_feedforward, .context = &kinds[i], .inputs = {{ROWS, WIDTH, false}}});
}

static void modulation_moves(void **state) {
  (void)state;
  for (int fixed = 0; fixed < 3; fixed++)
    jvp_check(
        &(struct jvp_case){.build = build_modulation,
                           .inputs = {{ROWS, WIDTH, fixed == 1}, {2, 3 * WIDTH, fixed == 2}}});
}

static void times_move(void **state) {
  (void)state;
  jvp_check(&(struct jvp_case){.build = build_times});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(maps_and_norms),   cmocka_unit_test(rotations),
      cmocka_unit_test(attention_moves),  cmocka_unit_test(feedforward_moves),
      cmocka_unit_test(modulation_moves), cmocka_unit_test(times_move)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
