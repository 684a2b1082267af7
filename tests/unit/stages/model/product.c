/* Matrix products against plain sums in double, and their bits for other threads and other rows. */
#include "stages/model/kernels/product.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/bf16.h"
#include "pipeline/base/random.h"
#include "stages/model/kernels/kernels.h"
#include "tests/common/tap.h"

enum kind { FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, KINDS };

struct sample {
  int64_t m, n, k;
  enum kind kind;
  enum dtype input, output;
  bool bias, add;
};

static void *make_values(int64_t count, enum dtype dtype, const char *purpose) {
  const struct random_stream stream = random_open(1, purpose, 0, 0);
  float *values = aligned_alloc(64, ((size_t)count * sizeof *values + 63) / 64 * 64);
  random_fill_normal(values, count, stream, 0);
  if (dtype == DTYPE_BF16)
    for (int64_t i = 0; i < count; i++) ((bf16 *)values)[i] = bf16_from_float(values[i]);
  return values;
}

static double value_at(const void *values, enum dtype dtype, int64_t i) {
  return dtype == DTYPE_BF16 ? (double)bf16_to_float(((const bf16 *)values)[i])
                             : (double)((const float *)values)[i];
}

/* Operands padded to odd strides; c begins as random numbers. */
static struct product make_product(const struct sample *sample) {
  struct product p = {.m = sample->m,
                      .n = sample->n,
                      .k = sample->k,
                      .c_row = sample->n + 3,
                      .input = sample->input,
                      .output = sample->output,
                      .add = sample->add};
  p.a_row = sample->kind == BACKWARD_WEIGHT ? 1 : p.k + 5;
  p.a_column = sample->kind == BACKWARD_WEIGHT ? p.m + 5 : 1;
  p.b_row = sample->kind == FORWARD ? 1 : p.n + 1;
  p.b_column = sample->kind == FORWARD ? p.k + 1 : 1;
  p.a = make_values((p.m + 5) * (p.k + 5), p.input, "a");
  p.b = make_values((p.n + 1) * (p.k + 1), p.input, "b");
  p.bias = sample->bias ? make_values(p.n, DTYPE_F32, "bias") : NULL;
  p.c = make_values(p.m * p.c_row, p.output, "c");
  return p;
}

static void free_product(struct product *product) {
  free((void *)(uintptr_t)product->a);
  free((void *)(uintptr_t)product->b);
  free((void *)(uintptr_t)product->bias);
  free(product->c);
}

static double expected_at(const struct product *p, const void *before, int64_t i, int64_t j) {
  double sum = p->bias ? (double)((const float *)p->bias)[j] : 0;
  if (p->add) sum += value_at(before, p->output, i * p->c_row + j);
  for (int64_t k = 0; k < p->k; k++)
    sum += value_at(p->a, p->input, i * p->a_row + k * p->a_column) *
           value_at(p->b, p->input, k * p->b_row + j * p->b_column);
  return sum;
}

static void check_against_double(const struct sample *sample) {
  struct product p = make_product(sample);
  void *before = make_values(p.m * p.c_row, p.output, "c");
  product_run(&p);
  double error = 0, norm = 1e-30;
  for (int64_t i = 0; i < p.m; i++) {
    for (int64_t j = 0; j < p.n; j++) {
      const double expected = expected_at(&p, before, i, j);
      const double difference = value_at(p.c, p.output, i * p.c_row + j) - expected;
      error += difference * difference;
      norm += expected * expected;
    }
    for (int64_t j = p.n; j < p.c_row; j++)
      assert_true(value_at(p.c, p.output, i * p.c_row + j) ==
                  value_at(before, p.output, i * p.c_row + j));
  }
  const double limit = p.output == DTYPE_BF16 ? 3e-3 : 1e-6;
  if (!(sqrt(error / norm) < limit))
    fail_msg("%lldx%lldx%lld kind %d %s: relative error %.2e", (long long)p.m, (long long)p.n,
             (long long)p.k, (int)sample->kind, dtype_name(p.input), sqrt(error / norm));
  free(before);
  free_product(&p);
}

/* Gradients of weights are F32. */
static enum dtype output_of(int types, int kind) {
  return types == 2 && kind != BACKWARD_WEIGHT ? DTYPE_BF16 : DTYPE_F32;
}

/* The sizes of the layers, one more and one less, on all element types this machine multiplies. */
static void products_equal_plain_sums(void **state) {
  (void)state;
  const int64_t sizes[][3] = {{1, 1, 1},    {1, 5, 3},    {3, 17, 2},    {17, 1, 9},
                              {63, 65, 64}, {65, 33, 1},  {130, 70, 31}, {600, 66, 37},
                              {8, 96, 768}, {5, 300, 40}, {40, 9, 2500}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int variant = 0; variant < KINDS * 3 * 4; variant++) {
      const int types = variant / 4 / KINDS;
      const struct sample sample = {.m = sizes[s][0],
                                    .n = sizes[s][1],
                                    .k = sizes[s][2],
                                    .kind = (enum kind)(variant / 4 % KINDS),
                                    .input = types == 0 ? DTYPE_F32 : DTYPE_BF16,
                                    .output = output_of(types, variant / 4 % KINDS),
                                    .bias = (variant & 1) != 0 &&
                                            variant / 4 % KINDS != BACKWARD_WEIGHT,
                                    .add = (variant & 2) != 0};
      check_against_double(&sample);
    }
}

/* Sizes that the processor's tiles take in pieces: long sums, wide b. */
static void tiles_multiply_in_pieces(void **state) {
  (void)state;
  if (!product_uses_tiles()) skip();
  const int64_t sizes[][3] = {{40, 33, 4200}, {2, 4100, 2100}, {300, 70, 65}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int kind = 0; kind < (sizes[s][1] > 1000 ? 1 : KINDS); kind++)
      check_against_double(&(struct sample){.m = sizes[s][0],
                                            .n = sizes[s][1],
                                            .k = sizes[s][2],
                                            .kind = (enum kind)kind,
                                            .input = DTYPE_BF16,
                                            .output = DTYPE_F32,
                                            .bias = kind != BACKWARD_WEIGHT,
                                            .add = kind != FORWARD});
}

/* Results of many bytes go past the caches, in whole lines where they begin with one. */
static void tiles_write_large_results(void **state) {
  (void)state;
  if (!product_uses_tiles()) skip();
  check_against_double(
      &(struct sample){2070, 2045, 7, FORWARD, DTYPE_BF16, DTYPE_BF16, .bias = true, .add = false});
}

static void check_threads(const struct sample *sample) {
  struct product p = make_product(sample);
  const size_t bytes = (size_t)(p.m * p.c_row) * dtype_bytes(p.output);
  void *before = malloc(bytes), *first = malloc(bytes);
  memcpy(before, p.c, bytes);
  omp_set_num_threads(1);
  product_run(&p);
  memcpy(first, p.c, bytes);
  for (int threads = 2; threads <= 4; threads++) {
    memcpy(p.c, before, bytes);
    omp_set_num_threads(threads);
    product_run(&p);
    assert_memory_equal(first, p.c, bytes);
  }
  free(before);
  free(first);
  free_product(&p);
}

static void bits_do_not_depend_on_threads(void **state) {
  (void)state;
  const int64_t sizes[][3] = {{700, 300, 130}, {256, 768, 1500}, {64, 1030, 257}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int variant = 0; variant < KINDS * 3; variant++) {
      const int types = variant / KINDS;
      const struct sample sample = {.m = sizes[s][0],
                                    .n = sizes[s][1],
                                    .k = sizes[s][2],
                                    .kind = (enum kind)(variant % KINDS),
                                    .input = types == 0 ? DTYPE_F32 : DTYPE_BF16,
                                    .output = output_of(types, variant % KINDS),
                                    .bias = variant % KINDS == FORWARD,
                                    .add = variant % KINDS != FORWARD};
      check_threads(&sample);
    }
  omp_set_num_threads(1);
}

/* R-IO-2 and the determinism contract: a row's result does not depend on the other rows. */
static void bits_do_not_depend_on_other_rows(void **state) {
  (void)state;
  for (int types = 0; types < 2; types++) {
    const enum dtype dtype = types ? DTYPE_BF16 : DTYPE_F32;
    const struct sample sample = {530, 200, 300, FORWARD, dtype, dtype, true, false};
    struct product whole = make_product(&sample);
    product_run(&whole);
    const int64_t parts[] = {1, 6, 64, 100, 359};
    struct product part = whole;
    part.c = calloc((size_t)(whole.m * whole.c_row), dtype_bytes(dtype));
    int64_t first = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; first += parts[i++]) {
      struct product piece = part;
      piece.m = parts[i];
      piece.a = (const char *)whole.a + first * whole.a_row * (int64_t)dtype_bytes(dtype);
      piece.c = (char *)part.c + first * whole.c_row * (int64_t)dtype_bytes(dtype);
      product_run(&piece);
    }
    for (int64_t i = 0; i < whole.m; i++)
      assert_memory_equal((char *)whole.c + i * whole.c_row * (int64_t)dtype_bytes(dtype),
                          (char *)part.c + i * whole.c_row * (int64_t)dtype_bytes(dtype),
                          (size_t)whole.n * dtype_bytes(dtype));
    free(part.c);
    free_product(&whole);
  }
}

static int close_products(void **state) {
  (void)state;
  product_close();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_equal_plain_sums),
      cmocka_unit_test(tiles_multiply_in_pieces),
      cmocka_unit_test(tiles_write_large_results),
      cmocka_unit_test(bits_do_not_depend_on_threads),
      cmocka_unit_test(bits_do_not_depend_on_other_rows),
  };
  return cmocka_run_group_tests(tests, NULL, close_products);
}
