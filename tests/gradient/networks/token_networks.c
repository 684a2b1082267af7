/* Derivatives of the networks that read tokens, in double: the GPT and both T5 encoders. */
#include "stages/model/networks/gpt.h"
#include "stages/model/networks/t5_encoder.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"

enum { BATCH = 2, POSITIONS = 5, VOCABULARY = 7 };

struct setting {
  struct arena declarations;
  struct params params;
  struct vocab vocab;
  struct gpt gpt;
  struct t5_encoder t5;
};

static const int32_t tokens[BATCH * POSITIONS] = {3, 1, 4, 1, 5, 2, 6, 5, 3, 0};
static const int32_t lengths[BATCH] = {POSITIONS, 3}, sources[BATCH] = {2, 0};

static void open_setting(struct setting *setting) {
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  params_init(&setting->params, &setting->declarations);
  assert_ok(vocab_init(&setting->vocab, NULL, VOCABULARY, 2));
}

static struct value *build_gpt(void *context, struct tape *tape, struct value *const *inputs,
                               double *objective) {
  struct setting *setting = context;
  (void)inputs;
  (void)objective;
  return gpt_forward(tape, &setting->gpt, &setting->vocab, tokens, BATCH, POSITIONS);
}

static void check_gpt(bool recompute) {
  struct setting setting;
  open_setting(&setting);
  gpt_declare(
      &setting.gpt, &setting.params,
      &(struct gpt_config){
          .depth = 2, .width = 8, .heads = 2, .vocabulary = VOCABULARY, .recompute = recompute});
  gradient_check(&(struct gradient_case){
      .build = build_gpt, .context = &setting, .params = &setting.params, .step = 1e-4});
  arena_free(&setting.declarations);
}

static void gpt(void **state) {
  (void)state;
  check_gpt(false);
}

static void gpt_recomputed(void **state) {
  (void)state;
  check_gpt(true);
}

static struct value *build_t5(void *context, struct tape *tape, struct value *const *inputs,
                              double *objective) {
  const struct setting *setting = context;
  const struct t5_input input = {.batch = BATCH,
                                 .positions = POSITIONS,
                                 .tokens = tokens,
                                 .lengths = lengths,
                                 .sources = sources};
  (void)inputs;
  (void)objective;
  return t5_encoder_forward(tape, &setting->t5, &input);
}

static void check_t5(bool gated) {
  struct setting setting;
  open_setting(&setting);
  t5_encoder_declare(&setting.t5, &setting.params,
                     &(struct t5_config){.vocabulary = VOCABULARY,
                                         .width = 6,
                                         .heads = 2,
                                         .head_dim = 4,
                                         .feedforward = 9,
                                         .depth = 2,
                                         .buckets = 8,
                                         .max_distance = 4,
                                         .epsilon = 1e-6,
                                         .gated = gated},
                     false);
  gradient_check(&(struct gradient_case){
      .build = build_t5, .context = &setting, .params = &setting.params, .step = 1e-5});
  arena_free(&setting.declarations);
}

static void t5_v1_0(void **state) {
  (void)state;
  check_t5(false);
}

static void t5_v1_1(void **state) {
  (void)state;
  check_t5(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gpt), cmocka_unit_test(gpt_recomputed),
                                     cmocka_unit_test(t5_v1_0), cmocka_unit_test(t5_v1_1)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
