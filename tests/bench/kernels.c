/* Speed of the table "cpu" in the element type that this machine computes fastest in: products
 * beside plain calls of oneDNN, attention beside the rate of products, the rest in bytes moved.
 * Figures for 8 sequences of 1024 tokens, width 768, 12 heads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/random.h"
#include "stages/model/kernels/kernels.h"
#include "tests/common/bench.h"
#include "tests/common/raw_product.h"

enum { B = 8, T = 1024, ROWS = B * T, WIDTH = 768, HIDDEN = 2048, HEADS = 12, ROUNDS = 4 };

struct bench {
  struct kernels k;
  struct arena memory;    /* as in training: of large pages */
  void *x, *y, *z, *wide; /* elements: [ROWS, WIDTH] three times, [ROWS, 2 HIDDEN] */
  void *wide_gradient;    /* as wide: in place the numbers would soon not be normal any more */
  void *sums;             /* [ROWS * HEADS] */
  float *weight_gradient; /* [2 HIDDEN, WIDTH] */
  struct raw_product *raw;
};

static void *make_elements(struct bench *b, int64_t count) {
  float *values = malloc((size_t)count * sizeof *values);
  void *elements = arena_take(&b->memory, (size_t)count * dtype_bytes(b->k.element));
  if (!values) exit(EXIT_FAILURE);
  random_fill_normal(values, count, random_open(1, "bench", (uint64_t)count, 0), 0);
  b->k.convert_from_float(elements, values, count);
  free(values);
  return elements;
}

static void forward(void *context) {
  struct bench *b = context;
  b->k.linear_forward(b->wide, b->x, b->y, NULL, ROWS, 2 * HIDDEN, WIDTH, 2 * HIDDEN, WIDTH);
}

static void backward_input(void *context) {
  struct bench *b = context;
  b->k.linear_backward_input(b->x, b->wide, b->y, ROWS, 2 * HIDDEN, WIDTH, WIDTH, 2 * HIDDEN,
                             false);
}

static void backward_weight(void *context) {
  struct bench *b = context;
  b->k.linear_backward_weight(b->weight_gradient, b->wide, b->x, ROWS, 2 * HIDDEN, WIDTH,
                              2 * HIDDEN, WIDTH);
}

static void raw(void *context) {
  struct bench *b = context;
  raw_product_run(b->raw);
}

static const double PRODUCT_FLOP = 2.0 * ROWS * 2 * HIDDEN * WIDTH;

/* Measures the wrapper and the library in turns; returns the wrapper's FLOP/s. */
static double bench_product(struct bench *b, const char *name, bench_work *work,
                            const struct raw_product_shape *shape) {
  b->raw = raw_product_make(shape);
  double ours = 0, theirs = 0;
  for (int i = 0; i < 2; i++) {
    const double o = PRODUCT_FLOP / bench_seconds(work, b, ROUNDS / 2);
    const double t = PRODUCT_FLOP / bench_seconds(raw, b, ROUNDS / 2);
    ours = o > ours ? o : ours;
    theirs = t > theirs ? t : theirs;
  }
  raw_product_free(b->raw);
  bench_row(name, ours / 1e9, "GFLOP/s", ours / theirs, "oneDNN");
  return ours;
}

static double bench_products(struct bench *b) {
  const int64_t n = ROWS, out = 2 * HIDDEN, in = WIDTH;
  const bool bf16 = b->k.element == DTYPE_BF16;
  struct raw_product_shape shape = {
      .c = b->wide, .a = b->x, .b = b->y, .m = n, .n = out, .k = in, .b_transposed = true};
  shape.bf16 = shape.bf16_out = bf16;
  const double rate = bench_product(b, "gemm_wrapper", forward, &shape);
  shape = (struct raw_product_shape){.c = b->x,
                                     .a = b->wide,
                                     .b = b->y,
                                     .m = n,
                                     .n = in,
                                     .k = out,
                                     .bf16 = bf16,
                                     .bf16_out = bf16};
  bench_product(b, "gemm_wrapper_input", backward_input, &shape);
  shape = (struct raw_product_shape){.c = b->weight_gradient,
                                     .a = b->wide,
                                     .b = b->x,
                                     .m = out,
                                     .n = in,
                                     .k = n,
                                     .a_transposed = true,
                                     .bf16 = bf16,
                                     .add = true};
  bench_product(b, "gemm_wrapper_weight", backward_weight, &shape);
  return rate;
}

static const struct attention_shape ATTENTION = {.B = B,
                                                 .Tq = T,
                                                 .Tk = T,
                                                 .H = HEADS,
                                                 .D = WIDTH / HEADS,
                                                 .q_stride = 3 * WIDTH,
                                                 .k_stride = 3 * WIDTH,
                                                 .v_stride = 3 * WIDTH,
                                                 .scale = 0.125};

static char *column(const struct bench *b, void *array, int64_t first) {
  return (char *)array + first * (int64_t)dtype_bytes(b->k.element);
}

static void attention_forward(void *context) {
  struct bench *b = context;
  b->k.attention_forward(b->x, b->sums, b->wide, column(b, b->wide, WIDTH),
                         column(b, b->wide, 2 * WIDTH), NULL, &ATTENTION);
}

static void attention_backward(void *context) {
  struct bench *b = context;
  char *gradient = b->z;
  b->k.attention_backward(gradient, column(b, gradient, WIDTH), column(b, gradient, 2 * WIDTH),
                          NULL, b->y, b->x, b->sums, b->wide, column(b, b->wide, WIDTH),
                          column(b, b->wide, 2 * WIDTH), NULL, &ATTENTION, false, false, false);
}

/* Two products forward and four backward count, not the one that is computed again. */
static void bench_attention(struct bench *b, double rate) {
  const double product = 2.0 * B * HEADS * T * T * (WIDTH / HEADS);
  const double f = bench_seconds(attention_forward, b, ROUNDS);
  const double r = bench_seconds(attention_backward, b, ROUNDS);
  bench_row("attention_1024x64", 6 * product / (f + r) / 1e9, "GFLOP/s",
            6 * product / (f + r) / rate, "gemm_wrapper");
  bench_row("attention_forward", 2 * product / f / 1e9, "GFLOP/s", 2 * product / f / rate,
            "gemm_wrapper");
  bench_row("attention_backward", 4 * product / r / 1e9, "GFLOP/s", 4 * product / r / rate,
            "gemm_wrapper");
}

static void copy(void *context) {
  struct bench *b = context;
  b->k.copy(b->y, b->x, ROWS * WIDTH);
}

static void rmsnorm_forward(void *context) {
  struct bench *b = context;
  b->k.rmsnorm_forward(b->y, b->sums, b->x, NULL, ROWS, 1, WIDTH, WIDTH, 1e-6);
}

static void rmsnorm_backward(void *context) {
  struct bench *b = context;
  b->k.rmsnorm_backward(b->z, b->weight_gradient, b->y, b->sums, b->x, b->sums, ROWS, 1, WIDTH,
                        WIDTH, true);
}

static void layernorm_forward(void *context) {
  struct bench *b = context;
  b->k.layernorm_forward(b->y, b->sums, b->weight_gradient, b->x, NULL, NULL, ROWS, WIDTH, WIDTH,
                         1e-6);
}

static void gated_forward(void *context) {
  struct bench *b = context;
  b->k.gated_forward(b->z, b->wide, ACTIVATION_SILU, ROWS, HIDDEN);
}

static void gated_backward(void *context) {
  struct bench *b = context;
  b->k.gated_backward(b->wide_gradient, b->z, b->wide, ACTIVATION_SILU, ROWS, HIDDEN, false);
}

static void modulate_backward(void *context) {
  struct bench *b = context;
  b->k.modulate_backward(b->z, b->wide, b->wide, b->y, b->x, b->wide, ROWS, WIDTH, T, WIDTH, false,
                         true, true);
}

static void sum_rows(void *context) {
  struct bench *b = context;
  b->k.sum_rows(b->weight_gradient, b->x, NULL, ROWS, WIDTH, WIDTH);
}

static void bench_memory(struct bench *b) {
  const struct {
    const char *name;
    bench_work *work;
    double elements;
  } rows[] = {{"copy", copy, 2.0 * ROWS * WIDTH},
              {"rmsnorm_forward", rmsnorm_forward, 2.0 * ROWS * WIDTH},
              {"rmsnorm_backward", rmsnorm_backward, 4.0 * ROWS * WIDTH},
              {"layernorm_forward", layernorm_forward, 2.0 * ROWS * WIDTH},
              {"gated_forward", gated_forward, 3.0 * ROWS * HIDDEN},
              {"gated_backward", gated_backward, 5.0 * ROWS * HIDDEN},
              {"modulate_backward", modulate_backward, 3.0 * ROWS * WIDTH},
              {"sum_rows", sum_rows, 1.0 * ROWS * WIDTH}};
  double reference = 0;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const double bytes = rows[i].elements * (double)dtype_bytes(b->k.element);
    const double rate = bytes / bench_seconds(rows[i].work, b, ROUNDS);
    if (i == 0) reference = rate;
    bench_row(rows[i].name, rate / 1e9, "GB/s", rate / reference, i ? "copy" : "");
  }
}

/* All, or what the first word names: "products" or "attention" (and what it is compared with). */
static void run(struct bench *b, const char *only) {
  const double rate = bench_products(b);
  if (!only || strcmp(only, "attention") == 0) bench_attention(b, rate);
  if (!only) bench_memory(b);
}

int main(int count, char **words) {
  struct bench b = {0};
  if (kernels_open(&b.k, "cpu", kernels_best_element()) != STATUS_OK) return EXIT_FAILURE;
  if (arena_init(&b.memory, "bench", (size_t)1 << 30) != STATUS_OK) return EXIT_FAILURE;
  b.x = make_elements(&b, ROWS * WIDTH);
  b.y = make_elements(&b, 2 * HIDDEN * WIDTH > ROWS * WIDTH ? 2 * HIDDEN * WIDTH : ROWS * WIDTH);
  b.z = make_elements(&b, 3 * ROWS * WIDTH);
  b.wide = make_elements(&b, ROWS * 2 * HIDDEN);
  b.wide_gradient = make_elements(&b, ROWS * 2 * HIDDEN);
  b.sums = arena_take(&b.memory, ROWS * HEADS * sizeof(float)); /* of a new arena: zeros */
  b.weight_gradient = arena_take(&b.memory, 2 * HIDDEN * WIDTH * sizeof(float));
  bench_head();
  run(&b, count > 1 ? words[1] : NULL);
  arena_free(&b.memory);
  return EXIT_SUCCESS;
}
