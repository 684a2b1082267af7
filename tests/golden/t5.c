/* T5 encoders against Hugging Face transformers (tests/golden/t5.py): v1.0 and v1.1, with padding
 * and relative positions beyond 128, in F32: relative error < 1e-4 (issue 2). */
#include <math.h>
#include <stdlib.h>

#include "stages/model/networks/t5_encoder.h"
#include "tests/common/golden.h"
#include "tests/common/tap.h"

enum { BATCH = 2, POSITIONS = 160, ROWS = BATCH * POSITIONS, WIDTH = 512, VOCABULARY = 32128 };

static const double golden_v1_0[ROWS + 1] = {
#include "tests/golden/t5_v1_0.inc"
};
static const double golden_v1_1[ROWS + 1] = {
#include "tests/golden/t5_v1_1.inc"
};

static void encode(const struct t5_config *config, const char *table, float *output) {
  struct arena declarations, weights, values, records;
  struct kernels kernels;
  struct params params;
  struct t5_encoder net;
  struct tape tape;
  static int32_t tokens[ROWS];
  static const int32_t lengths[BATCH] = {POSITIONS, 37};
  assert_ok(kernels_open(&kernels, table, DTYPE_F32));
  assert_ok(arena_init(&declarations, "declarations", 1 << 20));
  params_init(&params, &declarations);
  t5_encoder_declare(&net, &params, config, true);
  assert_ok(arena_init(&weights, "weights", ((size_t)params_count(&params) + 65536) * 4));
  assert_ok(arena_init(&values, "values", (size_t)1 << 28));
  assert_ok(arena_init(&records, "records", 1 << 20));
  params_bind(&params, &weights, DTYPE_F32, false);
  for (int64_t i = 0; i < params.count; i++) golden_fill_param(params.items[i]);
  for (int64_t i = 0; i < ROWS; i++) tokens[i] = golden_id("tokens", i, VOCABULARY);
  tape_init(&tape, &kernels, &values, &records);
  tape.recording = tape.training = false;
  const struct t5_input input = {
      .batch = BATCH, .positions = POSITIONS, .tokens = tokens, .lengths = lengths};
  tape_output(&tape, output, t5_encoder_forward(&tape, &net, &input));
  arena_free(&records);
  arena_free(&values);
  arena_free(&weights);
  arena_free(&declarations);
}

/* The bound is relative to what a projection is of: the size of its row. */
static void compare(const struct t5_config *config, const char *table, const double *golden) {
  float *output = malloc(sizeof(float) * ROWS * WIDTH);
  assert_non_null(output);
  encode(config, table, output);
  double total = 0;
  for (int64_t row = 0; row < ROWS; row++) {
    double square = 0;
    for (int64_t c = 0; c < WIDTH; c++)
      square += (double)output[row * WIDTH + c] * (double)output[row * WIDTH + c];
    total += square;
    const double found = golden_project("output", output + row * WIDTH, WIDTH);
    if (!(fabs(found - golden[row]) < 1e-4 * sqrt(square)))
      fail_msg("row %d: projection %.9g, golden %.9g", (int)row, found, golden[row]);
  }
  assert_true(fabs(sqrt(total) - golden[ROWS]) < 1e-5 * golden[ROWS]);
  free(output);
}

static struct t5_config shape(int64_t heads, int64_t feedforward, int64_t depth, bool gated) {
  return (struct t5_config){.vocabulary = VOCABULARY,
                            .width = WIDTH,
                            .heads = heads,
                            .head_dim = 64,
                            .feedforward = feedforward,
                            .depth = depth,
                            .buckets = 32,
                            .max_distance = 128,
                            .epsilon = 1e-6,
                            .gated = gated};
}

static void v1_0_equals_transformers(void **state) {
  (void)state;
  const struct t5_config config = shape(8, 2048, 6, false);
  compare(&config, "cpu", golden_v1_0);
}

static void v1_1_equals_transformers(void **state) {
  (void)state;
  const struct t5_config config = shape(6, 1024, 8, true);
  compare(&config, "cpu", golden_v1_1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(v1_0_equals_transformers),
                                     cmocka_unit_test(v1_1_equals_transformers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
