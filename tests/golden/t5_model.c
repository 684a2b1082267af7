/* Whole T5 models against Hugging Face transformers (tests/golden/t5_model.py): the states that the
 * head takes of one text and the losses of the other, with padding and positions more than 128
 * apart, in F32.
 */
#include <math.h>
#include <stdlib.h>

#include "stages/model/layers/head.h"
#include "stages/model/networks/t5_decoder.h"
#include "stages/model/networks/t5_encoder.h"
#include "tests/common/golden.h"
#include "tests/common/tap.h"

enum { BATCH = 2, INPUTS = 150, TARGETS = 140, ROWS = BATCH * TARGETS, WIDTH = 128 };
enum { VOCABULARY = 1000 };

static const double golden_tied[2 * TARGETS] = {
#include "tests/golden/t5_tied.inc"
};
static const double golden_untied[2 * TARGETS] = {
#include "tests/golden/t5_untied.inc"
};

/* What a model is given, and what it makes of it. */
struct pass {
  int32_t tokens[BATCH * INPUTS], before[ROWS], targets[ROWS];
  float states[ROWS * WIDTH];
  double loss[ROWS];
};

static void fill(struct pass *pass) {
  for (int i = 0; i < BATCH * INPUTS; i++) pass->tokens[i] = golden_id("tokens", i, VOCABULARY);
  for (int i = 0; i < ROWS; i++) pass->targets[i] = golden_id("targets", i, VOCABULARY);
  for (int i = 0; i < ROWS; i++) pass->before[i] = i % TARGETS ? pass->targets[i - 1] : 0;
}

static void run(struct tape *tape, struct pass *pass, const struct t5_encoder *encoder,
                const struct t5_decoder *decoder) {
  static const int32_t lengths[BATCH] = {INPUTS, 37};
  struct vocab vocab;
  struct value *memory = t5_encoder_forward(
      tape, encoder,
      &(struct t5_input){
          .batch = BATCH, .positions = INPUTS, .tokens = pass->tokens, .lengths = lengths});
  struct value *states = t5_decoder_forward(tape, decoder,
                                            &(struct t5_decoder_input){.batch = BATCH,
                                                                       .positions = TARGETS,
                                                                       .tokens = pass->before,
                                                                       .memory = memory,
                                                                       .memory_positions = INPUTS,
                                                                       .memory_lengths = lengths});
  tape_output(tape, pass->states, states);
  assert_ok(vocab_init(&vocab, NULL, VOCABULARY, 4));
  param_slice(decoder->head, 0, VOCABULARY);
  head_forward(tape, &(struct head_result){.loss = pass->loss}, states,
               &(struct head){.vocab = &vocab, .w = decoder->head, .targets = pass->targets});
}

static void compute(const struct t5_config *config, struct pass *pass) {
  struct arena declarations, weights, values, records;
  struct kernels kernels;
  struct params params;
  struct t5_encoder encoder;
  struct t5_decoder decoder;
  struct tape tape;
  assert_ok(kernels_open(&kernels, "cpu", DTYPE_F32));
  assert_ok(arena_init(&declarations, "declarations", 1 << 20));
  params_init(&params, &declarations);
  t5_encoder_declare(&encoder, &params, config, true);
  t5_decoder_declare(&decoder, &params, config, encoder.table);
  assert_ok(arena_init(&weights, "weights", ((size_t)params_count(&params) + 65536) * 4));
  assert_ok(arena_init(&values, "values", (size_t)1 << 27));
  assert_ok(arena_init(&records, "records", 1 << 20));
  params_bind(&params, &weights, DTYPE_F32, false);
  for (int64_t i = 0; i < params.count; i++) golden_fill_param(params.items[i]);
  tape_init(&tape, &kernels, &values, &records);
  tape.recording = tape.training = false;
  fill(pass);
  run(&tape, pass, &encoder, &decoder);
  arena_free(&records);
  arena_free(&values);
  arena_free(&weights);
  arena_free(&declarations);
}

static void compare(const struct t5_config *config, const double *golden) {
  static struct pass pass;
  compute(config, &pass);
  for (int row = 0; row < TARGETS; row++) {
    const float *states = pass.states + row * WIDTH;
    const double found = golden_project("output", states, WIDTH), loss = pass.loss[TARGETS + row];
    double square = 0;
    for (int64_t c = 0; c < WIDTH; c++) square += (double)states[c] * (double)states[c];
    if (!(fabs(found - golden[row]) < 1e-5 * sqrt(square)))
      fail_msg("row %d: projection %.9g, golden %.9g", row, found, golden[row]);
    if (!(fabs(loss - golden[TARGETS + row]) < 1e-5 * golden[TARGETS + row]))
      fail_msg("row %d: loss %.9g, golden %.9g", row, loss, golden[TARGETS + row]);
  }
}

static struct t5_config shape(int64_t feedforward, bool tied) {
  return (struct t5_config){.vocabulary = VOCABULARY,
                            .width = WIDTH,
                            .heads = 4,
                            .head_dim = 32,
                            .feedforward = feedforward,
                            .depth = 3,
                            .decoder_depth = 2,
                            .buckets = 32,
                            .max_distance = 128,
                            .epsilon = 1e-6,
                            .gated = !tied,
                            .shared_head = tied};
}

static void v1_0_equals_transformers(void **state) {
  (void)state;
  const struct t5_config config = shape(384, true);
  compare(&config, golden_tied);
}

static void v1_1_equals_transformers(void **state) {
  (void)state;
  const struct t5_config config = shape(320, false);
  compare(&config, golden_untied);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(v1_0_equals_transformers),
                                     cmocka_unit_test(v1_1_equals_transformers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
