/* The whole objective of ELF in double: against central differences, and, where it stops gradients
 * (first predictions, guided targets), against the same objective with those held fixed. */
#include <math.h>
#include <stdlib.h>

#include "stages/flow/elf_state.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/head.h"
#include "stages/model/layers/mse.h"
#include "tests/common/gradient.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

enum { N = TINY_ROWS * TINY_POSITIONS, SIZE = N * TINY_LATENT };

static double weight_of(struct tiny_flow *tiny) {
  double weight[FLOW_PARTS];
  tiny->flow.kind->weights(&tiny->flow, &tiny->batch, weight);
  return weight[ELF_MSE] + weight[ELF_CE];
}

static struct value *build_loss(void *context, struct tape *tape, struct value *const *inputs,
                                double *objective) {
  struct tiny_flow *tiny = context;
  (void)inputs;
  struct flow_losses losses;
  double weight[FLOW_PARTS] = {0};
  tiny->flow.kind->weights(&tiny->flow, &tiny->batch, weight);
  assert_ok(elf_loss(&tiny->flow, tape, &tiny->batch, weight, &losses));
  if (arena_is_measuring(tape->arena)) return NULL;
  assert_true(losses.weight[ELF_MSE] == weight[ELF_MSE]);
  assert_true(losses.weight[ELF_CE] == weight[ELF_CE]);
  *objective += flow_elf.objective(losses.sum, weight);
  return NULL;
}

static void open_tiny(struct tiny_flow *tiny, double decode_share, double self_condition) {
  tiny_flow_options(tiny);
  tiny->options.elf_decode_share = decode_share;
  tiny->options.elf_self_condition = self_condition;
}

static void check_differences(double decode_share, enum prediction_choice prediction,
                              double penalty) {
  struct tiny_flow tiny;
  open_tiny(&tiny, decode_share, 0);
  tiny.options.elf_prediction = prediction;
  tiny.options.label_smoothing = tiny.options.z_loss = penalty;
  tiny_flow_open(&tiny, &flow_elf);
  gradient_check(&(struct gradient_case){.build = build_loss,
                                         .context = &tiny,
                                         .params = &tiny.params,
                                         .step = 1e-4,
                                         .measures_most = true});
  tiny_flow_close(&tiny);
}

static void denoise_and_decode(void **state) {
  (void)state;
  check_differences(0.4, PREDICTION_X, 0);
}

static void denoise_only(void **state) {
  (void)state;
  check_differences(0, PREDICTION_X, 0);
}

static void decode_only(void **state) {
  (void)state;
  check_differences(1, PREDICTION_X, 0);
}

static void smoothing_and_z_loss(void **state) {
  (void)state;
  check_differences(0.4, PREDICTION_X, 0.1);
}

static void velocity_and_noise(void **state) {
  (void)state;
  check_differences(0.4, PREDICTION_V, 0);
  check_differences(0.4, PREDICTION_EPS, 0);
}

/* The teacher's steps are constants: the student is not differentiated through them. */
static void distilled(void **state) {
  (void)state;
  struct tiny_flow tiny;
  open_tiny(&tiny, 0.4, 0);
  tiny.distills = true;
  tiny.distill.elf_rounds = 2;
  tiny.distill.steps = 10;
  tiny.distill.elf_teacher_steps = 2;
  tiny_flow_open(&tiny, &flow_elf);
  tiny_flow_bind_teacher(&tiny);
  gradient_check(&(struct gradient_case){.build = build_loss,
                                         .context = &tiny,
                                         .params = &tiny.params,
                                         .step = 1e-4,
                                         .measures_most = true});
  tiny_flow_close(&tiny);
}

/* Pairs, one of them without its source: only targets are lost. */
static void pairs(void **state) {
  (void)state;
  static const int32_t sources[TINY_ROWS] = {2, 2, 1};
  static float alone[SIZE];
  struct tiny_flow tiny;
  open_tiny(&tiny, 0.4, 0);
  tiny.options.elf_source_drop = 0.3;
  tiny_flow_open(&tiny, &flow_elf);
  for (int i = 0; i < SIZE; i++) alone[i] = 0.5f * tiny.embeddings[i];
  tiny.batch.sources = sources;
  tiny.batch.alone = alone;
  gradient_check(&(struct gradient_case){.build = build_loss,
                                         .context = &tiny,
                                         .params = &tiny.params,
                                         .step = 1e-4,
                                         .measures_most = true});
  tiny_flow_close(&tiny);
}

/* The objective of denoised rows that all have a draft, both its constants taken at the first
 * point. */
struct fixed {
  struct tiny_flow tiny;
  bool known, guided;
  float z[SIZE], draft[SIZE], target[SIZE];
};

static struct value *predict(struct tape *tape, const struct fixed *fixed,
                             const struct elf_row *rows, const float *draft) {
  const struct elf *elf = fixed->tiny.flow.state;
  static double time[TINY_ROWS], guidance[TINY_ROWS];
  static float decode[TINY_ROWS];
  for (int b = 0; b < TINY_ROWS; b++) {
    time[b] = rows[b].time;
    guidance[b] = rows[b].guidance;
  }
  const struct elf_backbone_input input = {.batch = TINY_ROWS,
                                           .positions = TINY_POSITIONS,
                                           .z = tape_input(tape, fixed->z, N, TINY_LATENT),
                                           .draft = tape_input(tape, draft, N, TINY_LATENT),
                                           .time = time,
                                           .guidance = guidance,
                                           .decode = decode};
  return elf_backbone_denoise(tape, &elf->network,
                              elf_backbone_forward(tape, &elf->network, &input));
}

/* Two passes without gradient, as the paper states the guided target: v* + (1 - 1/w)(v_sc - v_0),
 * in terms of latents. */
static void learn_constants(struct fixed *fixed, struct tape *tape, const struct elf_row *rows) {
  static float nothing[SIZE], with[SIZE];
  const bool was_recording = tape_pause(tape);
  tape_output(tape, fixed->z, elf_noisy(&fixed->tiny.flow, tape, &fixed->tiny.batch, rows));
  tape_output(tape, fixed->draft, predict(tape, fixed, rows, nothing));
  tape_output(tape, with, predict(tape, fixed, rows, fixed->draft));
  tape_resume(tape, was_recording);
  for (int i = 0; i < SIZE; i++) {
    const double w = rows[i / (TINY_POSITIONS * TINY_LATENT)].guidance;
    const double push = fixed->guided ? 1 - 1 / w : 0;
    fixed->target[i] = (float)((double)fixed->tiny.embeddings[i] +
                               push * ((double)with[i] - (double)fixed->draft[i]));
  }
  fixed->known = !arena_is_measuring(tape->arena);
}

static struct value *build_fixed(void *context, struct tape *tape, struct value *const *inputs,
                                 double *objective) {
  struct fixed *fixed = context;
  static float weight[N];
  static double loss[N];
  struct elf_row rows[TINY_ROWS];
  (void)inputs;
  for (int b = 0; b < TINY_ROWS; b++)
    rows[b] = elf_draw_row(&fixed->tiny.flow, &fixed->tiny.batch, b);
  const bool dry = arena_is_measuring(tape->arena);
  if (!fixed->known) learn_constants(fixed, tape, rows);
  for (int i = 0; i < N; i++) {
    const int b = i / TINY_POSITIONS;
    const double gap = fmax(1 - rows[b].time, ELF_SMALLEST_GAP);
    const bool covered = i % TINY_POSITIONS < fixed->tiny.lengths[b];
    weight[i] = covered ? (float)(1 / (gap * gap * weight_of(&fixed->tiny))) : 0;
  }
  struct value *x = predict(tape, fixed, rows, fixed->draft);
  mse_forward(tape, loss, x, tape_input(tape, fixed->target, N, TINY_LATENT), weight);
  for (int i = 0; !dry && i < N; i++) *objective += (double)weight[i] * loss[i];
  return NULL;
}

static void check_same(double guidance, bool guided) {
  static struct fixed fixed;
  static struct tiny_flow tiny;
  fixed = (struct fixed){.guided = guided};
  open_tiny(&tiny, 0, 1);
  open_tiny(&fixed.tiny, 0, 1);
  tiny.options.elf_guidance_min = tiny.options.elf_guidance_max = guidance;
  fixed.tiny.options = tiny.options;
  tiny_flow_open(&tiny, &flow_elf);
  tiny_flow_open(&fixed.tiny, &flow_elf);
  const struct gradient_case real = {.build = build_loss,
                                     .context = &tiny,
                                     .params = &tiny.params,
                                     .measures_most = true},
                             held = {.build = build_fixed,
                                     .context = &fixed,
                                     .params = &fixed.tiny.params,
                                     .measures_most = true};
  const size_t count = (size_t)gradient_count(&real);
  double *a = calloc(count, sizeof *a), *b = calloc(count, sizeof *b), error = 0, size = 0;
  const double x = gradient_compute(&real, a), y = gradient_compute(&held, b);
  for (size_t i = 0; i < count; i++) {
    error = fmax(error, fabs(a[i] - b[i]));
    size = fmax(size, fabs(b[i]));
  }
  assert_true(fabs(x - y) < 1e-6 * fabs(y));
  assert_true(size > 0 && error < 1e-6 * size);
  free(a);
  free(b);
  tiny_flow_close(&tiny);
  tiny_flow_close(&fixed.tiny);
}

/* Section 1.6: the cheap form is the published one. */
static void guidance_is_the_published_target(void **state) {
  (void)state;
  check_same(3, true);
}

static void guidance_one_is_the_plain_target(void **state) {
  (void)state;
  check_same(1, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(denoise_and_decode),
                                     cmocka_unit_test(denoise_only),
                                     cmocka_unit_test(decode_only),
                                     cmocka_unit_test(smoothing_and_z_loss),
                                     cmocka_unit_test(velocity_and_noise),
                                     cmocka_unit_test(distilled),
                                     cmocka_unit_test(pairs),
                                     cmocka_unit_test(guidance_is_the_published_target),
                                     cmocka_unit_test(guidance_one_is_the_plain_target)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
