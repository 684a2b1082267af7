/* Derivatives of the networks that formulations train, in double, with and without recomputing. */
#include "stages/model/layers/combine.h"
#include "stages/model/networks/aurora_autoencoder.h"
#include "stages/model/networks/cfm_transformer.h"
#include "stages/model/networks/elf_backbone.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"

enum { BATCH = 2, POSITIONS = 3, ROWS = BATCH * POSITIONS, LATENT = 6, WIDTH = 8 };

struct setting {
  struct arena declarations;
  struct params params;
  struct elf_backbone elf;
  struct cfm_transformer cfm;
  struct aurora_autoencoder aurora;
};

static void open_setting(struct setting *setting) {
  assert_ok(arena_init(&setting->declarations, "declarations", 1 << 20));
  params_init(&setting->params, &setting->declarations);
}

static const double early[BATCH] = {0.2, 1}, late[BATCH] = {0.7, 1}, guidance[BATCH] = {3, 1.5};
static const float decode[BATCH] = {0, 1};

/* Both outputs side by side, so that one projection covers them. */
static struct value *build_elf(void *context, struct tape *tape, struct value *const *inputs,
                               double *objective) {
  const struct setting *setting = context;
  (void)objective;
  const struct elf_backbone_input input = {.batch = BATCH,
                                           .positions = POSITIONS,
                                           .z = inputs[0],
                                           .draft = inputs[1],
                                           .time = early,
                                           .guidance = guidance,
                                           .decode = decode};
  struct value *hidden = elf_backbone_forward(tape, &setting->elf, &input);
  return combine_columns(tape, elf_backbone_denoise(tape, &setting->elf, hidden),
                         elf_backbone_decode(tape, &setting->elf, hidden));
}

static void check_elf(bool recompute) {
  struct setting setting;
  open_setting(&setting);
  elf_backbone_declare(&setting.elf, &setting.params,
                       &(struct elf_backbone_config){.depth = 2,
                                                     .width = WIDTH,
                                                     .heads = 2,
                                                     .bottleneck = 3,
                                                     .latent_width = LATENT,
                                                     .vocabulary = 5,
                                                     .recompute = recompute});
  /* the table is the head's: without a head it has no gradient */
  setting.elf.unembed->frozen = setting.elf.unembed_bias->frozen = true;
  gradient_check(&(struct gradient_case){.build = build_elf,
                                         .context = &setting,
                                         .step = 1e-4,
                                         .inputs = {{ROWS, LATENT}, {ROWS, LATENT}},
                                         .params = &setting.params});
  arena_free(&setting.declarations);
}

static void elf(void **state) {
  (void)state;
  check_elf(false);
}

static void elf_recomputed(void **state) {
  (void)state;
  check_elf(true);
}

static struct value *build_cfm(void *context, struct tape *tape, struct value *const *inputs,
                               double *objective) {
  const struct setting *setting = context;
  (void)objective;
  return cfm_transformer_forward(tape, &setting->cfm, inputs[0],
                                 &(struct cfm_times){.from = early, .to = late}, BATCH, POSITIONS);
}

static void check_cfm(struct cfm_transformer_config config) {
  struct setting setting;
  open_setting(&setting);
  config.depth = 2;
  config.width = WIDTH;
  config.heads = 2;
  config.state_width = LATENT;
  config.condition = 4;
  cfm_transformer_declare(&setting.cfm, &setting.params, &config);
  gradient_check(&(struct gradient_case){.build = build_cfm,
                                         .context = &setting,
                                         .step = 1e-4,
                                         .inputs = {{ROWS, LATENT}},
                                         .params = &setting.params});
  arena_free(&setting.declarations);
}

static void cfm(void **state) {
  (void)state;
  check_cfm((struct cfm_transformer_config){.recompute = false});
}

static void cfm_recomputed(void **state) {
  (void)state;
  check_cfm((struct cfm_transformer_config){.recompute = true});
}

static void cfm_options(void **state) {
  (void)state;
  check_cfm((struct cfm_transformer_config){.bounded = true});
  check_cfm((struct cfm_transformer_config){.shared = true});
  check_cfm((struct cfm_transformer_config){.plain_attention = true, .spectral = true});
  check_cfm((struct cfm_transformer_config){.bounded = true, .shared = true, .recompute = true});
}

/* Encoder and decoder, fewer latents than positions. */
static struct value *build_aurora(void *context, struct tape *tape, struct value *const *inputs,
                                  double *objective) {
  const struct setting *setting = context;
  (void)objective;
  struct value *latents =
      aurora_autoencoder_encode(tape, &setting->aurora, inputs[0], BATCH, POSITIONS, 2);
  return aurora_autoencoder_decode(tape, &setting->aurora, latents, BATCH, 2, POSITIONS);
}

static void check_aurora(bool recompute) {
  struct setting setting;
  open_setting(&setting);
  aurora_autoencoder_declare(&setting.aurora, &setting.params,
                             &(struct aurora_config){.depth = 2,
                                                     .width = WIDTH,
                                                     .heads = 2,
                                                     .feedforward = 10,
                                                     .vocabulary = 5,
                                                     .recompute = recompute});
  setting.aurora.table->frozen = true;
  gradient_check(&(struct gradient_case){.build = build_aurora,
                                         .context = &setting,
                                         .step = 1e-4,
                                         .inputs = {{ROWS, WIDTH}},
                                         .params = &setting.params});
  arena_free(&setting.declarations);
}

static void aurora(void **state) {
  (void)state;
  check_aurora(false);
}

static void aurora_recomputed(void **state) {
  (void)state;
  check_aurora(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(elf),
                                     cmocka_unit_test(elf_recomputed),
                                     cmocka_unit_test(cfm),
                                     cmocka_unit_test(cfm_recomputed),
                                     cmocka_unit_test(cfm_options),
                                     cmocka_unit_test(aurora),
                                     cmocka_unit_test(aurora_recomputed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
