/* ELF's network, objective and every gradient against an independent PyTorch implementation
 * (tests/golden/elf.py), in F32: relative error < 1e-5 (issue 5). Shapes: B cut to two layers, one
 * layer of M (head width 66) and of L (inner width 3413). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/model/layers/combine.h"
#include "stages/model/layers/head.h"
#include "stages/model/layers/mse.h"
#include "stages/model/networks/elf_backbone.h"
#include "tests/common/golden.h"
#include "tests/common/tap.h"

enum { E = 512, S = 10, ROWS = 4, N = ROWS * S, SIZE = N * E, DECODED = 2 };

static const double TOLERANCE = 1e-5;

/* Rows: denoised plainly; with self-conditioning, w = 2; decoded; with self-conditioning, w = 0.7.
 */
static const double time[ROWS] = {0.2, 0.35, 1, 0.6}, guidance[ROWS] = {2, 2, 3, 0.7};
static const float decode[ROWS] = {0, 0, 1, 0};
static const bool has_draft[ROWS] = {false, true, false, true};
static const int lengths[ROWS] = {10, 7, 9, 10};
static const double all_tokens = 36;

struct golden_gradient {
  const char *name;
  double projection, size;
};

/* mse and cross-entropy, each summed over its tokens; the first output position projected without
 * mode tokens; then all outputs. */
enum { GOLDEN_MSE, GOLDEN_CE, GOLDEN_ABSENT, GOLDEN_OUTPUT, GOLDEN_COUNT = GOLDEN_OUTPUT + N };

static const double golden_b[GOLDEN_COUNT] = {
#include "tests/golden/elf_b.inc"
};
static const double golden_m[GOLDEN_COUNT] = {
#include "tests/golden/elf_m.inc"
};
static const double golden_l[GOLDEN_COUNT] = {
#include "tests/golden/elf_l.inc"
};
static const struct golden_gradient gradients_b[] = {
#include "tests/golden/elf_b_gradients.inc"
};
static const struct golden_gradient gradients_m[] = {
#include "tests/golden/elf_m_gradients.inc"
};
static const struct golden_gradient gradients_l[] = {
#include "tests/golden/elf_l_gradients.inc"
};

struct work {
  struct arena declarations, weights, values, records;
  struct kernels kernels;
  struct params params;
  struct vocab vocab;
  struct elf_backbone net;
  struct tape tape;
  float *z, *data, *draft, *x; /* [SIZE] */
  float weight[N];
  double loss[N], mse, ce;
};

static void open_work(struct work *work, const struct elf_backbone_config *config) {
  *work = (struct work){0};
  assert_ok(kernels_open(&work->kernels, "cpu", DTYPE_F32));
  assert_ok(vocab_init(&work->vocab, NULL, config->vocabulary, 4));
  assert_ok(arena_init(&work->declarations, "declarations", 1 << 20));
  params_init(&work->params, &work->declarations);
  elf_backbone_declare(&work->net, &work->params, config);
  assert_ok(
      arena_init(&work->weights, "weights", ((size_t)params_count(&work->params) + 65536) * 8));
  assert_ok(arena_init(&work->values, "values", (size_t)1 << 28));
  assert_ok(arena_init(&work->records, "records", 1 << 20));
  params_bind(&work->params, &work->weights, DTYPE_F32, true);
  for (int64_t i = 0; i < work->params.count; i++) golden_fill_param(work->params.items[i]);
  tape_init(&work->tape, &work->kernels, &work->values, &work->records);
  float **arrays[] = {&work->z, &work->data, &work->draft, &work->x};
  for (int i = 0; i < 4; i++) {
    *arrays[i] = calloc(SIZE, sizeof(float));
    assert_non_null(*arrays[i]);
  }
  golden_fill(work->z, SIZE, "z", 2, 0);
  golden_fill(work->data, SIZE, "data", 1.7, 0);
}

static void close_work(struct work *work) {
  free(work->z);
  free(work->data);
  free(work->draft);
  free(work->x);
  arena_free(&work->records);
  arena_free(&work->values);
  arena_free(&work->weights);
  arena_free(&work->declarations);
}

static struct value *hidden(struct work *work) {
  struct tape *tape = &work->tape;
  const struct elf_backbone_input input = {.batch = ROWS,
                                           .positions = S,
                                           .z = tape_input(tape, work->z, N, E),
                                           .draft = tape_input(tape, work->draft, N, E),
                                           .time = time,
                                           .guidance = guidance,
                                           .decode = decode};
  return elf_backbone_forward(tape, &work->net, &input);
}

/* The first predictions, kept where a row has a draft. */
static void make_draft(struct work *work) {
  const bool was_recording = tape_pause(&work->tape);
  tape_output(&work->tape, work->draft,
              elf_backbone_denoise(&work->tape, &work->net, hidden(work)));
  tape_resume(&work->tape, was_recording);
  for (int i = 0; i < SIZE; i++)
    if (!has_draft[i / (S * E)]) work->draft[i] = 0;
}

static bool is_covered(int i) {
  return i % S < lengths[i / S];
}

/* In terms of latents: data + (1 - 1/w) (prediction - draft); the published form takes the
 * difference of two velocities from passes of their own. */
static void denoise_loss(struct work *work, struct value *h) {
  static float target[SIZE];
  struct tape *tape = &work->tape;
  struct value *x = elf_backbone_denoise(tape, &work->net, h);
  tape_output(tape, work->x, x);
  for (int i = 0; i < SIZE; i++) {
    const int b = i / (S * E);
    const double push = has_draft[b] ? 1 - 1 / guidance[b] : 0;
    target[i] =
        (float)((double)work->data[i] + push * ((double)work->x[i] - (double)work->draft[i]));
  }
  for (int i = 0; i < N; i++) {
    const double gap = 1 - time[i / S];
    if (i / S != DECODED && is_covered(i)) work->weight[i] = (float)(1 / (gap * gap * all_tokens));
  }
  mse_forward(tape, work->loss, x, tape_input(tape, target, N, E), work->weight);
  for (int i = 0; i < N; i++) work->mse += work->loss[i] * (double)work->weight[i] * all_tokens;
}

static void decode_loss(struct work *work, struct value *h) {
  static int64_t index[S];
  static int32_t targets[S];
  static float weight[S];
  double loss[S];
  struct tape *tape = &work->tape;
  for (int i = 0; i < S; i++) {
    index[i] = DECODED * S + i;
    targets[i] = golden_id("tokens", index[i], work->net.config.vocabulary);
    weight[i] = is_covered((int)index[i]) ? (float)(1 / all_tokens) : 0;
  }
  struct value *x = elf_backbone_decode(tape, &work->net, combine_pick_rows(tape, h, index, S));
  head_forward(tape, &(struct head_result){.loss = loss}, x,
               &(struct head){.vocab = &work->vocab,
                              .w = work->net.unembed,
                              .b = work->net.unembed_bias,
                              .targets = targets,
                              .weight = weight});
  for (int i = 0; i < S; i++) work->ce += weight[i] > 0 ? loss[i] : 0;
}

static double size_of(const float *values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)values[i] * (double)values[i];
  return sqrt(sum);
}

static void compare_outputs(const struct work *work, const double *golden) {
  assert_true(fabs(work->mse - golden[GOLDEN_MSE]) < TOLERANCE * golden[GOLDEN_MSE]);
  assert_true(fabs(work->ce - golden[GOLDEN_CE]) < TOLERANCE * golden[GOLDEN_CE]);
  for (int i = 0; i < N; i++) {
    const float *row = work->x + i * E;
    const double found = golden_project("output", row, E), expected = golden[GOLDEN_OUTPUT + i];
    if (!(fabs(found - expected) < TOLERANCE * size_of(row, E)))
      fail_msg("output row %d: projection %.9g, golden %.9g", i, found, expected);
  }
  /* Zero mode tokens are not absent ones: they take part in attention. */
  const double present = golden_project("output", work->x, E);
  assert_true(fabs(present - golden[GOLDEN_ABSENT]) > 1e-3 * size_of(work->x, E));
}

/* The gradient in the order of checkpoints. */
static float *checkpoint_order(const struct param *param) {
  const int64_t rows = param->rows, cols = param->cols;
  const bool transposed = strstr(param->name, "_kernel");
  const float *gradient = param->gradient;
  float *copy = malloc(sizeof(float) * (size_t)(rows * cols));
  assert_non_null(copy);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++)
      copy[transposed ? j * rows + i : i * cols + j] = gradient[i * cols + j];
  return copy;
}

static void compare_gradient(const struct work *work, const struct golden_gradient *golden) {
  char vector[PARAM_NAME_BYTES + 16];
  const struct param *param = params_find(&work->params, golden->name);
  assert_non_null(param);
  snprintf(vector, sizeof vector, "gradient.%s", golden->name);
  float *gradient = checkpoint_order(param);
  const double found = golden_project(vector, gradient, param_count(param));
  const double size = size_of(gradient, param_count(param));
  free(gradient);
  if (!(fabs(found - golden->projection) < TOLERANCE * golden->size &&
        fabs(size - golden->size) < TOLERANCE * golden->size))
    fail_msg("gradient of %s: %.9g of size %.9g, golden %.9g of size %.9g", golden->name, found,
             size, golden->projection, golden->size);
}

static void compare(const struct elf_backbone_config *config, const double *golden,
                    const struct golden_gradient *gradients, size_t count) {
  static struct work work;
  open_work(&work, config);
  make_draft(&work);
  struct value *h = hidden(&work);
  denoise_loss(&work, h);
  decode_loss(&work, h);
  assert_ok(tape_backward(&work.tape, NULL, NULL));
  compare_outputs(&work, golden);
  assert_int_equal(count, work.params.count);
  for (size_t i = 0; i < count; i++) compare_gradient(&work, &gradients[i]);
  close_work(&work);
}

static void b_equals_pytorch(void **state) {
  (void)state;
  compare(&(struct elf_backbone_config){.depth = 2,
                                        .width = 768,
                                        .heads = 12,
                                        .bottleneck = 128,
                                        .latent_width = E,
                                        .vocabulary = 32100},
          golden_b, gradients_b, sizeof gradients_b / sizeof *gradients_b);
}

static void m_equals_pytorch(void **state) {
  (void)state;
  compare(&(struct elf_backbone_config){.depth = 1,
                                        .width = 1056,
                                        .heads = 16,
                                        .bottleneck = 128,
                                        .latent_width = E,
                                        .vocabulary = 320},
          golden_m, gradients_m, sizeof gradients_m / sizeof *gradients_m);
}

static void l_equals_pytorch(void **state) {
  (void)state;
  compare(&(struct elf_backbone_config){.depth = 1,
                                        .width = 1280,
                                        .heads = 16,
                                        .bottleneck = 128,
                                        .latent_width = E,
                                        .vocabulary = 320},
          golden_l, gradients_l, sizeof gradients_l / sizeof *gradients_l);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(b_equals_pytorch),
                                     cmocka_unit_test(m_equals_pytorch),
                                     cmocka_unit_test(l_equals_pytorch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
