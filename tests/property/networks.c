/* Who sees whom: laws of the networks' masks, to the last bit. */
#include <stdlib.h>
#include <string.h>

#include "stages/model/networks/aurora_autoencoder.h"
#include "stages/model/networks/gpt.h"
#include "stages/model/networks/t5_encoder.h"
#include "tests/common/golden.h"
#include "tests/common/tap.h"

enum { POSITIONS = 6, WIDTH = 8, VOCABULARY = 11, ROW = POSITIONS * WIDTH };

struct bench {
  struct arena declarations, weights, values, records;
  struct kernels kernels;
  struct params params;
  struct vocab vocab;
  struct tape tape;
};

static void open_bench(struct bench *bench) {
  assert_ok(kernels_open(&bench->kernels, "reference", DTYPE_F32));
  assert_ok(vocab_init(&bench->vocab, NULL, VOCABULARY, 2));
  assert_ok(arena_init(&bench->declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&bench->weights, "weights", 1 << 20));
  assert_ok(arena_init(&bench->values, "values", 1 << 22));
  assert_ok(arena_init(&bench->records, "records", 1 << 20));
  params_init(&bench->params, &bench->declarations);
}

static void bind(struct bench *bench) {
  params_bind(&bench->params, &bench->weights, DTYPE_F32, false);
  for (int64_t i = 0; i < bench->params.count; i++) golden_fill_param(bench->params.items[i]);
  tape_init(&bench->tape, &bench->kernels, &bench->values, &bench->records);
  bench->tape.recording = false;
}

static void close_bench(struct bench *bench) {
  arena_free(&bench->records);
  arena_free(&bench->values);
  arena_free(&bench->weights);
  arena_free(&bench->declarations);
}

static const int32_t text[2 * POSITIONS] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};

static void run_t5(struct bench *bench, const struct t5_encoder *net, float *out,
                   const struct t5_input *input) {
  tape_output(&bench->tape, out, t5_encoder_forward(&bench->tape, net, input));
}

static void declare_t5(struct bench *bench, struct t5_encoder *net) {
  open_bench(bench);
  t5_encoder_declare(net, &bench->params,
                     &(struct t5_config){.vocabulary = VOCABULARY,
                                         .width = WIDTH,
                                         .heads = 2,
                                         .head_dim = 4,
                                         .feedforward = 12,
                                         .depth = 2,
                                         .buckets = 8,
                                         .max_distance = 16,
                                         .epsilon = 1e-6},
                     true);
  bind(bench);
}

/* R-IO-2: neighbours and padding change no bit of a text's embedding. */
static void embedding_depends_on_its_text_alone(void **state) {
  (void)state;
  struct bench bench;
  struct t5_encoder net;
  float both[2 * ROW], alone[ROW], other[ROW];
  int32_t padded[POSITIONS];
  const int32_t lengths[2] = {POSITIONS, 4};
  declare_t5(&bench, &net);
  run_t5(
      &bench, &net, both,
      &(struct t5_input){.batch = 2, .positions = POSITIONS, .tokens = text, .lengths = lengths});
  memcpy(padded, text + POSITIONS, sizeof padded);
  struct t5_input input = {
      .batch = 1, .positions = POSITIONS, .tokens = padded, .lengths = lengths + 1};
  run_t5(&bench, &net, alone, &input);
  assert_memory_equal(alone, both + ROW, sizeof alone);
  padded[5] = 0; /* behind the end */
  run_t5(&bench, &net, other, &input);
  assert_memory_equal(other, alone, 5 * WIDTH * sizeof *alone);
  assert_memory_not_equal(other, alone, sizeof other);
  input.positions = 4; /* no padding at all */
  run_t5(&bench, &net, other, &input);
  assert_memory_equal(other, alone, 4 * WIDTH * sizeof *alone);
  close_bench(&bench);
}

/* ELF (arXiv 2605.10938): sources never see targets; targets see sources. */
static void source_does_not_see_its_target(void **state) {
  (void)state;
  struct bench bench;
  struct t5_encoder net;
  float before[ROW], after[ROW];
  int32_t tokens[POSITIONS];
  const int32_t sources[1] = {3}, lengths[1] = {POSITIONS};
  declare_t5(&bench, &net);
  memcpy(tokens, text, sizeof tokens);
  const struct t5_input input = {
      .batch = 1, .positions = POSITIONS, .tokens = tokens, .lengths = lengths, .sources = sources};
  run_t5(&bench, &net, before, &input);
  tokens[4] = 7;
  run_t5(&bench, &net, after, &input);
  assert_memory_equal(before, after, 3 * WIDTH * sizeof *before);
  assert_memory_not_equal(before + 3 * WIDTH, after + 3 * WIDTH, WIDTH * sizeof *before);
  tokens[0] = 7;
  run_t5(&bench, &net, before, &input);
  assert_memory_not_equal(before + 5 * WIDTH, after + 5 * WIDTH, WIDTH * sizeof *before);
  close_bench(&bench);
}

static void gpt_does_not_see_the_future(void **state) {
  (void)state;
  struct bench bench;
  struct gpt net;
  float before[ROW], after[ROW];
  int32_t tokens[POSITIONS];
  open_bench(&bench);
  gpt_declare(
      &net, &bench.params,
      &(struct gpt_config){.depth = 2, .width = WIDTH, .heads = 2, .vocabulary = VOCABULARY});
  bind(&bench);
  memcpy(tokens, text, sizeof tokens);
  tape_output(&bench.tape, before,
              gpt_forward(&bench.tape, &net, &bench.vocab, tokens, 1, POSITIONS));
  tokens[3] = 7;
  tape_output(&bench.tape, after,
              gpt_forward(&bench.tape, &net, &bench.vocab, tokens, 1, POSITIONS));
  assert_memory_equal(before, after, 3 * WIDTH * sizeof *before);
  for (int i = 3; i < POSITIONS; i++)
    assert_memory_not_equal(before + i * WIDTH, after + i * WIDTH, WIDTH * sizeof *before);
  close_bench(&bench);
}

/* AURORA-LM (arXiv 2608.02602), with 3 latents for 6 positions (from 1): latent i sees tokens up
 * to 2 i, position j sees latents up to (j - 1) / 2 + 1. */
static void autoencoder_is_causal_on_both_sides(void **state) {
  (void)state;
  enum { LATENTS = 3 };
  struct bench bench;
  struct aurora_autoencoder net;
  float tokens[ROW], before[ROW], after[ROW];
  open_bench(&bench);
  aurora_autoencoder_declare(
      &net, &bench.params,
      &(struct aurora_config){.depth = 2, .width = WIDTH, .heads = 2, .vocabulary = VOCABULARY});
  bind(&bench);
  golden_fill(tokens, ROW, "tokens", 1, 0);
  struct value *input = tape_input(&bench.tape, tokens, POSITIONS, WIDTH);
  tape_output(&bench.tape, before,
              aurora_autoencoder_encode(&bench.tape, &net, input, 1, POSITIONS, LATENTS));
  tokens[2 * WIDTH] += 1; /* the third token: of the second latent */
  input = tape_input(&bench.tape, tokens, POSITIONS, WIDTH);
  struct value *latents =
      aurora_autoencoder_encode(&bench.tape, &net, input, 1, POSITIONS, LATENTS);
  tape_output(&bench.tape, after, latents);
  assert_memory_equal(before, after, WIDTH * sizeof *before);
  assert_memory_not_equal(before + WIDTH, after + WIDTH, WIDTH * sizeof *before);
  struct value *old = tape_input(&bench.tape, before, LATENTS, WIDTH);
  tape_output(&bench.tape, before,
              aurora_autoencoder_decode(&bench.tape, &net, old, 1, LATENTS, POSITIONS));
  tape_output(&bench.tape, after,
              aurora_autoencoder_decode(&bench.tape, &net, latents, 1, LATENTS, POSITIONS));
  assert_memory_equal(before, after, 2 * WIDTH * sizeof *before);
  assert_memory_not_equal(before + 2 * WIDTH, after + 2 * WIDTH, WIDTH * sizeof *before);
  close_bench(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(embedding_depends_on_its_text_alone),
                                     cmocka_unit_test(source_does_not_see_its_target),
                                     cmocka_unit_test(gpt_does_not_see_the_future),
                                     cmocka_unit_test(autoencoder_is_causal_on_both_sides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
