/* Derivatives of the objectives of categorical flow maps, in double: base flow and distillation.
 *
 * The adaptive weight is a constant for the gradient by definition, so it is off here.
 */
#include "stages/flow/flow.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"

enum { ROWS = 3, POSITIONS = 4, VOCABULARY = 37, SLICES = 2, WIDTH = 8 };

static const int32_t tokens[ROWS * POSITIONS] = {1, 5, 9, 2, 0, 36, 17, 17, 20, 21, 3, 4};
static const int32_t lengths[ROWS] = {4, 4, 3};
static const int64_t samples[ROWS] = {11, 12, 13}, strata[ROWS] = {0, 1, 2};

struct setting {
  struct arena declarations;
  struct params params, teacher;
  struct options options, distill;
  struct vocab vocab;
  struct kernels kernels;
  struct flow flow;
};

static const struct flow_batch batch = {.count = ROWS,
                                        .positions = POSITIONS,
                                        .tokens = tokens,
                                        .lengths = lengths,
                                        .samples = samples,
                                        .strata = strata,
                                        .stratum_count = ROWS,
                                        .step = 3};

static void open_setting(struct setting *setting, bool distill, bool flag) {
  *setting = (struct setting){0};
  assert_ok(arena_init(&setting->declarations, "declarations", 8 << 20));
  params_init(&setting->params, &setting->declarations);
  params_init(&setting->teacher, &setting->declarations);
  options_defaults(&setting->options);
  options_defaults(&setting->distill);
  setting->options.width = WIDTH;
  setting->options.depth = 1;
  setting->options.heads = 2;
  setting->options.cfm_condition = 4;
  setting->options.cfm_weight_power = 0;
  setting->options.cfm_clean_flag = flag;
  if (flag) setting->options.cfm_prefix = 1;
  setting->distill.distill_weight_power = 0;
  setting->distill.distill_share = 1; /* a measuring tape takes every row as a jump */
  assert_ok(vocab_init(&setting->vocab, NULL, VOCABULARY, SLICES));
  assert_ok(kernels_open(&setting->kernels, "reference", DTYPE_F64));
  setting->flow = (struct flow){.kind = &flow_cfm,
                                .kernels = &setting->kernels,
                                .options = &setting->options,
                                .distill = distill ? &setting->distill : NULL,
                                .vocab = &setting->vocab,
                                .params = &setting->params,
                                .teacher = &setting->teacher,
                                .positions = POSITIONS,
                                .seed = 5};
  assert_ok(flow_cfm.init(&setting->flow, &setting->declarations));
}

static struct value *build(void *context, struct tape *tape, struct value *const *inputs,
                           double *objective) {
  struct setting *setting = context;
  struct flow_losses losses;
  double total[FLOW_PARTS] = {0};
  (void)inputs;
  flow_cfm.weights(&setting->flow, &batch, total);
  assert_ok(flow_cfm.loss(&setting->flow, tape, &batch, total, &losses));
  for (int p = 0; flow_cfm.parts[p]; p++)
    if (total[p] > 0 && !arena_is_measuring(tape->arena)) {
      assert_true(losses.weight[p] == total[p]);
      *objective += losses.sum[p] / total[p];
    }
  return NULL;
}

static void base_flow(void **state) {
  (void)state;
  struct setting setting;
  for (int flag = 0; flag < 2; flag++) {
    open_setting(&setting, false, flag);
    setting.options.z_loss = 0.05;
    gradient_check(&(struct gradient_case){
        .build = build, .context = &setting, .params = &setting.params, .step = 1e-4});
    arena_free(&setting.declarations);
  }
}

static void bind_teacher(struct setting *setting, struct arena *arena) {
  struct arena measured;
  for (int64_t i = 0; i < setting->teacher.count; i++) setting->teacher.items[i]->frozen = true;
  arena_measure(&measured, "teacher");
  params_bind(&setting->teacher, &measured, DTYPE_F64, false);
  assert_ok(arena_init(arena, "teacher", measured.peak));
  params_bind(&setting->teacher, arena, DTYPE_F64, false);
  params_initialise(&setting->teacher, DTYPE_F64, 9);
}

static void check_distillation(enum divergence_choice divergence, bool flag) {
  struct setting setting;
  struct arena teacher;
  double total[FLOW_PARTS] = {0};
  open_setting(&setting, true, flag);
  setting.distill.distill_divergence = divergence;
  bind_teacher(&setting, &teacher);
  flow_cfm.weights(&setting.flow, &batch, total);
  assert_true(total[0] == 0 && total[1] > 0);
  gradient_check(&(struct gradient_case){
      .build = build, .context = &setting, .params = &setting.params, .step = 1e-4});
  arena_free(&teacher);
  arena_free(&setting.declarations);
}

static void distillation(void **state) {
  (void)state;
  check_distillation(DISTILL_FORWARD_KL, true);
  check_distillation(DISTILL_REVERSE_KL, false);
  check_distillation(DISTILL_JSD, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(base_flow), cmocka_unit_test(distillation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
