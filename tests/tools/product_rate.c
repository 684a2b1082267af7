/* Prints the rate of a large matrix product on the threads of this process, in GFLOP/s: the best of
 * a few, in the element type that this machine computes fastest in. */
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/random.h"
#include "stages/model/kernels/kernels.h"
#include "tests/common/bench.h"

enum { ROWS = 1024, OUT = 8192, IN = 1536, ROUNDS = 8 };

struct product {
  struct kernels kernels;
  void *y, *x, *w;
};

static void multiply(void *context) {
  const struct product *p = context;
  p->kernels.linear_forward(p->y, p->x, p->w, NULL, ROWS, OUT, IN, OUT, IN);
}

static void *make(const struct kernels *kernels, int64_t count) {
  float *values = malloc((size_t)count * sizeof *values);
  void *elements = malloc((size_t)count * sizeof *values);
  if (!values || !elements) exit(EXIT_FAILURE);
  random_fill_normal(values, count, random_open(1, "rate", (uint64_t)count, 0), 0);
  kernels->convert_from_float(elements, values, count);
  free(values);
  return elements;
}

int main(void) {
  struct product p;
  if (kernels_open(&p.kernels, "cpu", kernels_best_element()) != STATUS_OK) return EXIT_FAILURE;
  p.y = make(&p.kernels, ROWS * OUT);
  p.x = make(&p.kernels, ROWS * IN);
  p.w = make(&p.kernels, OUT * IN);
  printf("%.1f\n", 2.0 * ROWS * OUT * IN / bench_seconds(multiply, &p, ROUNDS) / 1e9);
  free(p.y), free(p.x), free(p.w);
  return EXIT_SUCCESS;
}
