/* One update of a matrix [8192, 2048] whose weights are bf16 with the low bits of their F32 masters
 * apart (F32 weights where this machine computes fastest in F32): AdamW in bytes moved beside
 * memcpy, Muon in operations beside the F32 products that it is made of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/train/optimizer.h"
#include "tests/common/bench.h"

enum { ROWS = 8192, COLS = 2048, COUNT = ROWS * COLS, ROUNDS = 3 };

struct bench {
  struct kernels kernels; /* F32 */
  struct options options;
  struct params params;
  struct optimizer optimizer;
  struct arena declarations, weights, state;
  float *gradient, *target; /* [COUNT] */
};

static void require(enum status status) {
  if (status == STATUS_OK) return;
  fprintf(stderr, "%s\n%s", error_message(), error_trace());
  exit(EXIT_FAILURE);
}

static void open_optimizer(struct bench *b, enum dtype element) {
  static struct comm world = {.rank = 0, .size = 1};
  static struct grid grid = {.world = &world};
  static int owner[1];
  static bool sliced[1];
  const struct zero zero = {.grid = &grid, .tensors = 1, .owner = owner, .sliced = sliced};
  const struct optimizer_setup setup = {.options = &b->options,
                                        .zero = &zero,
                                        .params = b->params.items,
                                        .count = 1,
                                        .element = element,
                                        .kernels = "cpu"};
  require(optimizer_init(&b->optimizer, &setup, &b->state));
  optimizer_start(&b->optimizer);
}

static void open_bench(struct bench *b, enum optimizer_choice rule, enum moments_choice moments) {
  const enum dtype element = kernels_best_element();
  options_defaults(&b->options);
  b->options.optimizer = rule;
  b->options.moments = moments;
  b->options.ema = 0;
  require(arena_init(&b->declarations, "declarations", 1 << 20));
  require(arena_init(&b->weights, "weights", (size_t)COUNT * 4 + 4096));
  require(arena_init(&b->state, "state", (size_t)COUNT * 12 + 4096));
  params_init(&b->params, &b->declarations);
  params_add_matrix(&b->params, ROWS, COLS, PARAM_FAN_IN_NORMAL, 1, "matrix");
  params_bind(&b->params, &b->weights, element, false);
  params_initialise(&b->params, element, 1);
  open_optimizer(b, element);
}

static void close_bench(struct bench *b) {
  optimizer_free(&b->optimizer);
  arena_free(&b->state);
  arena_free(&b->weights);
  arena_free(&b->declarations);
}

static void update(void *context) {
  struct bench *b = context;
  const struct gradients_sum sum = {b->gradient, DTYPE_F32};
  const struct optimizer_update update = {.rate = 1e-4, .gradient_scale = 1};
  bool finite;
  optimizer_begin(&b->optimizer);
  require(optimizer_apply(&b->optimizer, 0, &sum, &update, &finite));
  if (!finite) exit(EXIT_FAILURE);
}

/* On the threads that the update has. */
static void copy(void *context) {
  struct bench *b = context;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < ROWS; row++)
    memcpy(b->target + row * COLS, b->gradient + row * COLS, COLS * sizeof(float));
}

static void multiply(void *context) {
  struct bench *b = context;
  b->kernels.linear_forward(b->target, b->gradient, b->gradient, NULL, COLS, COLS, COLS, COLS,
                            COLS);
}

static double update_seconds(struct bench *b, enum optimizer_choice rule,
                             enum moments_choice moments) {
  open_bench(b, rule, moments);
  const double seconds = bench_seconds(update, b, ROUNDS);
  close_bench(b);
  return seconds;
}

/* The gradient is read; weights, their low bits and the moments are read and written. */
static void bench_adam(struct bench *b, const char *name, enum moments_choice moments,
                       double copying) {
  const double moment_bytes = moments == MOMENTS_BF16 ? 2 : 4;
  const double bytes = COUNT * (4 + 2 * (4 + 2 * moment_bytes));
  const double rate = bytes / update_seconds(b, OPTIMIZER_ADAMW, moments);
  bench_row(name, rate / 1e9, "GB/s", rate / copying, "memcpy");
}

/* Five steps of a Gram matrix, its square, and their product with the matrix. */
static void bench_muon(struct bench *b) {
  const double product = 2.0 * COLS * COLS * COLS;
  const double flop = MUON_ITERATIONS * (2.0 * ROWS / COLS + 1) * product;
  double rate = product / bench_seconds(multiply, b, ROUNDS);
  const double achieved = flop / update_seconds(b, OPTIMIZER_MUON, MOMENTS_FP32);
  const double after = product / bench_seconds(multiply, b, ROUNDS);
  if (after > rate) rate = after;
  bench_row("optimizer_muon", achieved / 1e9, "GFLOP/s", achieved / rate, "gemm_f32");
}

int main(void) {
  static struct bench b;
  b.gradient = malloc((size_t)COUNT * sizeof(float));
  b.target = malloc((size_t)COUNT * sizeof(float));
  if (!b.gradient || !b.target) return EXIT_FAILURE;
  require(kernels_open(&b.kernels, "cpu", DTYPE_F32));
  random_fill_normal(b.gradient, COUNT, random_open(1, "bench", 0, 0), 0);
  bench_head();
  const double copying = 2.0 * COUNT * sizeof(float) / bench_seconds(copy, &b, ROUNDS);
  bench_row("memcpy", copying / 1e9, "GB/s", 0, "");
  bench_adam(&b, "optimizer", MOMENTS_FP32, copying);
  bench_adam(&b, "optimizer_bf16_moments", MOMENTS_BF16, copying);
  bench_muon(&b);
  free(b.gradient), free(b.target);
  return EXIT_SUCCESS;
}
