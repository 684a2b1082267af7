/* Whole training steps in the element type that this machine computes fastest in, beside the rate
 * of matrix products in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "tests/common/bench.h"
#include "tests/common/bench_step.h"

enum { SIDE = 2048, STEPS = 2 };

struct product {
  struct kernels kernels;
  void *a, *b, *c;
};

static void multiply(void *context) {
  struct product *p = context;
  p->kernels.linear_forward(p->c, p->a, p->b, NULL, SIDE, SIDE, SIDE, SIDE, SIDE);
}

static void *make_elements(const struct kernels *kernels) {
  const int64_t count = (int64_t)SIDE * SIDE;
  float *values = malloc((size_t)count * sizeof *values), *elements = malloc((size_t)count * 4);
  if (!values || !elements) exit(EXIT_FAILURE);
  random_fill_normal(values, count, random_open(1, "bench", 0, 0), 0);
  kernels->convert_from_float(elements, values, count);
  free(values);
  return elements;
}

/* FLOP/s of a large product. */
static double product_rate(void) {
  struct product p;
  if (kernels_open(&p.kernels, "cpu", kernels_best_element()) != STATUS_OK) exit(EXIT_FAILURE);
  p.a = make_elements(&p.kernels);
  p.b = make_elements(&p.kernels);
  p.c = make_elements(&p.kernels);
  const double rate = 2.0 * SIDE * SIDE * SIDE / bench_seconds(multiply, &p, 5);
  free(p.a), free(p.b), free(p.c);
  return rate;
}

/* The rate of products before and after the step, the better of them. */
static void bench(const char *name, const struct bench_step_shape *shape) {
  char row[64];
  double rate = product_rate();
  const struct bench_step_times t = bench_step_run(shape, STEPS);
  const double after = product_rate(), seconds = t.forward + t.backward + t.optimizer;
  if (after > rate) rate = after;
  bench_row(name, t.flop / seconds / 1e9, "GFLOP/s", t.flop / seconds / rate, "gemm");
  snprintf(row, sizeof row, "%s_tokens", name);
  bench_row(row, (double)t.tokens / seconds, "tokens/s", 0, "");
  snprintf(row, sizeof row, "%s_forward", name);
  bench_row(row, t.forward, "s", t.forward / seconds, "step");
  snprintf(row, sizeof row, "%s_backward", name);
  bench_row(row, t.backward, "s", t.backward / seconds, "step");
  snprintf(row, sizeof row, "%s_optimizer", name);
  bench_row(row, t.optimizer, "s", t.optimizer / seconds, "step");
}

static struct bench_step_shape base_shape(const char *kind, int64_t rows) {
  struct bench_step_shape shape = {.kind = flow_find(kind), .rows = rows, .positions = 1024};
  options_defaults(&shape.options);
  shape.options.width = 768;
  shape.options.depth = 12;
  shape.options.heads = 12;
  shape.options.ema = 0;
  return shape;
}

/* As its recipes train: half of the rows with self-conditioning, and all with guidance. */
static void step_elf_b(void) {
  struct bench_step_shape shape = base_shape("elf", 8);
  shape.vocabulary = 32100;
  shape.embedding_width = 512;
  bench("step_elf_b", &shape);
}

static void step_gpt2_124m(void) {
  struct bench_step_shape shape = base_shape("ar", 4);
  shape.vocabulary = 50257;
  bench("step_gpt2_124m", &shape);
}

static void step_cfm_400m(void) {
  struct bench_step_shape shape = base_shape("cfm", 2);
  shape.options.width = 1024;
  shape.options.heads = 16;
  shape.options.depth = 24;
  shape.vocabulary = 50257;
  bench("step_cfm_400m", &shape);
}

/* The text autoencoder of AURORA-LM, small: 6 layers each way, GPT-2's vocabulary. */
static void step_aurora_s(void) {
  struct bench_step_shape shape = base_shape("autoencoder", 4);
  shape.options.depth = 6;
  shape.options.feedforward = 3072;
  shape.vocabulary = 50257;
  bench("step_aurora_s", &shape);
}

int main(int count, char **words) {
  const struct {
    const char *name;
    void (*run)(void);
  } steps[] = {{"elf_b", step_elf_b},
               {"gpt2_124m", step_gpt2_124m},
               {"cfm_400m", step_cfm_400m},
               {"aurora_s", step_aurora_s}};
  bench_head();
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
    if (count < 2 || strcmp(words[1], steps[i].name) == 0) steps[i].run();
  return EXIT_SUCCESS;
}
