/* What ELF's three predictions have in common (arXiv 2605.10938, appendix C.1): each output stands
 * for latents, and objective and steps see only those. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "stages/flow/elf_state.h"
#include "tests/common/tap.h"
#include "tests/common/tiny_flow.h"

enum { N = TINY_ROWS * TINY_POSITIONS, SIZE = N * TINY_LATENT };

static const double times[TINY_ROWS] = {0, 0.4, 0.97};

static void start(struct tiny_flow *tiny, enum prediction_choice prediction) {
  tiny_flow_options(tiny);
  tiny->options.elf_prediction = prediction;
  tiny->options.elf_decode_share = tiny->options.elf_self_condition = 0;
  tiny_flow_open(tiny, &flow_elf);
  tiny_flow_bind(tiny);
}

/* The denoising output becomes `bias` whatever the network sees. */
static void fix_output(struct tiny_flow *tiny, double bias) {
  struct elf *elf = tiny->flow.state;
  double *weight = elf->network.final->data, *biases = elf->network.final_bias->data;
  for (int64_t i = 0; i < param_count(elf->network.final); i++) weight[i] = 0;
  for (int64_t i = 0; i < TINY_LATENT; i++) biases[i] = bias;
}

/* x[SIZE] from z[SIZE], the network's output being `bias` everywhere. */
static void predict(float *x, const float *z, enum prediction_choice prediction, double bias) {
  static const float nothing[N * 8];
  struct tiny_flow tiny;
  struct tape tape;
  start(&tiny, prediction);
  fix_output(&tiny, bias);
  tape_init(&tape, &tiny.kernels, &tiny.values, &tiny.records);
  struct value *hidden = tape_input(&tape, nothing, N, tiny.options.width);
  struct value *seen = tape_input(&tape, z, N, TINY_LATENT);
  const struct elf *elf = tiny.flow.state;
  tape_output(&tape, x,
              elf_predict(&tiny.flow, &tape, &elf->network, hidden, seen, times, TINY_ROWS));
  tiny_flow_close(&tiny);
}

static void outputs_stand_for_latents(void **state) {
  (void)state;
  static float z[SIZE], x[SIZE], v[SIZE], eps[SIZE];
  const double bias = 0.7, sigma = 2;
  random_fill_normal(z, SIZE, random_open(4, "z", 0, 0), 0);
  predict(x, z, PREDICTION_X, bias);
  predict(v, z, PREDICTION_V, bias);
  predict(eps, z, PREDICTION_EPS, bias);
  for (int i = 0; i < SIZE; i++) {
    const double t = times[i / (TINY_POSITIONS * TINY_LATENT)], gap = fmax(1 - t, 0.05);
    const double velocity = ((double)z[i] - sigma * bias) / fmax(t, 0.05);
    assert_near((double)x[i], bias, 1e-6);
    assert_near((double)v[i], (double)z[i] + gap * bias, 1e-6);
    assert_near((double)eps[i], (double)z[i] + gap * velocity, 1e-5);
  }
}

/* z = t x + (1 - t) sigma eps, taken apart by the right output of each kind, gives x back. */
static void right_outputs_agree(void **state) {
  (void)state;
  static float z[SIZE], found[SIZE];
  const double data = 0.6, noise = -0.3, sigma = 2;
  for (int i = 0; i < SIZE; i++) {
    const double t = times[i / (TINY_POSITIONS * TINY_LATENT)];
    z[i] = (float)(t * data + (1 - t) * sigma * noise);
  }
  const double outputs[] = {
      [PREDICTION_X] = data, [PREDICTION_V] = data - sigma * noise, [PREDICTION_EPS] = noise};
  for (int kind = PREDICTION_X; kind <= PREDICTION_EPS; kind++) {
    predict(found, z, (enum prediction_choice)kind, outputs[kind]);
    for (int i = 0; i < SIZE; i++) { /* where no share is bounded */
      const double t = times[i / (TINY_POSITIONS * TINY_LATENT)];
      if (t > 0.05 && t < 0.95) assert_near((double)found[i], data, 1e-5);
    }
  }
}

/* A velocity of zero leaves the data's own velocity as the error: the loss does not ask what was
 * predicted. */
static void loss_is_on_velocities(void **state) {
  (void)state;
  static float z[SIZE];
  struct tiny_flow tiny;
  struct tape tape;
  struct elf_row rows[TINY_ROWS];
  double total[FLOW_PARTS], expected = 0;
  start(&tiny, PREDICTION_V);
  fix_output(&tiny, 0);
  tiny.flow.kind->weights(&tiny.flow, &tiny.batch, total);
  const struct flow_losses losses = tiny_flow_loss(&tiny, &tiny.batch, total, false);
  tape_init(&tape, &tiny.kernels, &tiny.values, &tiny.records);
  for (int b = 0; b < TINY_ROWS; b++) rows[b] = elf_draw_row(&tiny.flow, &tiny.batch, b);
  tape_output(&tape, z, elf_noisy(&tiny.flow, &tape, &tiny.batch, rows));
  for (int i = 0; i < SIZE; i++) {
    const int b = i / (TINY_POSITIONS * TINY_LATENT);
    const double velocity = ((double)tiny.embeddings[i] - (double)z[i]) / elf_gap(rows[b].time);
    if (i / TINY_LATENT % TINY_POSITIONS < tiny.lengths[b])
      expected += velocity * velocity / TINY_LATENT;
  }
  assert_near(losses.sum[ELF_MSE], expected, 1e-5 * expected);
  tiny_flow_close(&tiny);
}

/* A constant velocity moves a state straight, however many steps are taken. */
static void constant_velocity_moves_straight(void **state) {
  (void)state;
  for (int steps = 1; steps <= 16; steps *= 4) {
    float z = 0.25f;
    for (int k = 0; k < steps; k++) {
      const double t = (double)k / steps;
      const float x = (float)((double)z + elf_gap(t) * 1.5);
      elf_step(&z, &x, 1, t, (double)(k + 1) / steps);
    }
    assert_near((double)z, 0.25 + 1.5, 1e-5);
  }
}

enum { TEXTS = 12, ROW_BYTES = TINY_POSITIONS * (int)sizeof(int32_t) };

/* Whether all texts are the same when the output is fixed. */
static bool draws_one_text(enum prediction_choice prediction) {
  struct tiny_flow tiny;
  int32_t texts[TEXTS][TINY_POSITIONS], alone[TINY_POSITIONS];
  bool same = true;
  start(&tiny, prediction);
  fix_output(&tiny, 0.5);
  tiny.options.elf_noise_scale = 300; /* so that the decoder tells texts apart */
  tiny_flow_sample(&tiny, texts[0], 0, TEXTS, 5);
  tiny_flow_sample(&tiny, alone, TEXTS - 1, 1, 5);
  assert_memory_equal(alone, texts[TEXTS - 1], ROW_BYTES);
  for (int i = 1; i < TEXTS; i++) same = same && !memcmp(texts[i], texts[0], ROW_BYTES);
  tiny_flow_close(&tiny);
  return same;
}

/* Fixed latents are one text; a fixed velocity, or noise, keeps what each text began with. */
static void samplers_follow_the_prediction(void **state) {
  (void)state;
  assert_true(draws_one_text(PREDICTION_X));
  assert_false(draws_one_text(PREDICTION_V));
  assert_false(draws_one_text(PREDICTION_EPS));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(outputs_stand_for_latents), cmocka_unit_test(right_outputs_agree),
      cmocka_unit_test(loss_is_on_velocities), cmocka_unit_test(constant_velocity_moves_straight),
      cmocka_unit_test(samplers_follow_the_prediction)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
