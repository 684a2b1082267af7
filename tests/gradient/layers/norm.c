/* Derivatives of the norms, also of groups (QK-norm) and of views. */
#include "stages/model/layers/layernorm.h"
#include "stages/model/layers/rmsnorm.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"

struct setting {
  struct arena declarations;
  struct params params;
  struct param *gain, *bias;
  int64_t groups;
};

static void declare(struct setting *setting, int64_t gain, int64_t groups) {
  *setting = (struct setting){.groups = groups};
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  params_init(&setting->params, &setting->declarations);
  if (gain) setting->gain = params_add_vector(&setting->params, gain, PARAM_ONE, 0, "gain");
}

static struct value *rms(void *context, struct tape *tape, struct value *const *inputs,
                         double *objective) {
  const struct setting *setting = context;
  (void)objective;
  return rmsnorm_forward(tape, inputs[0], setting->gain, setting->groups, 1e-5);
}

static struct value *rms_of_view(void *context, struct tape *tape, struct value *const *inputs,
                                 double *objective) {
  const struct setting *setting = context;
  (void)objective;
  return rmsnorm_forward(tape, tape_columns(tape, inputs[0], 2, 6), setting->gain, setting->groups,
                         1e-5);
}

static void check(struct setting *setting, struct gradient_shape shape,
                  struct value *(*build)(void *, struct tape *, struct value *const *, double *)) {
  gradient_check(&(struct gradient_case){
      .build = build, .context = setting, .inputs = {shape}, .params = &setting->params});
  arena_free(&setting->declarations);
}

static void rmsnorm_with_and_without_gain(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 6, 1);
  check(&setting, (struct gradient_shape){4, 6}, rms);
  declare(&setting, 0, 1);
  check(&setting, (struct gradient_shape){4, 6}, rms);
}

static void rmsnorm_of_heads(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 3, 2);
  check(&setting, (struct gradient_shape){4, 6}, rms);
  declare(&setting, 3, 2);
  check(&setting, (struct gradient_shape){4, 9}, rms_of_view);
}

static struct value *layer(void *context, struct tape *tape, struct value *const *inputs,
                           double *objective) {
  const struct setting *setting = context;
  (void)objective;
  return layernorm_forward(tape, tape_columns(tape, inputs[0], 1, 5), setting->gain, setting->bias,
                           1e-5);
}

static void layernorm_with_and_without_gain(void **state) {
  (void)state;
  struct setting setting;
  declare(&setting, 5, 1);
  setting.bias = params_add_vector(&setting.params, 5, PARAM_ZERO, 0, "bias");
  check(&setting, (struct gradient_shape){4, 7}, layer);
  declare(&setting, 0, 1);
  check(&setting, (struct gradient_shape){4, 7}, layer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rmsnorm_with_and_without_gain),
      cmocka_unit_test(rmsnorm_of_heads),
      cmocka_unit_test(layernorm_with_and_without_gain),
  };
  return cmocka_run_group_tests_name("derivatives of norms", tests, NULL, NULL);
}
