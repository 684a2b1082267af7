#include "sharding/dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sharding/dense_multiply.h"
#include "tests/common/tap.h"

static double value(int64_t i) {
  return (double)((i * 7919) % 1009 - 504) / 127;
}

static double *make(int64_t count, int64_t seed) {
  double *values = malloc((size_t)count * sizeof *values);
  assert_non_null(values);
  for (int64_t i = 0; i < count; i++) values[i] = value(i + seed);
  return values;
}

/* The specification: sums over k in order, one product after the other. */
static void reference(double *c, struct dense_view a, struct dense_view b,
                      const struct dense_sizes *s, double sign) {
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t j = 0; j < s->n; j++)
      for (int64_t k = 0; k < s->k; k++)
        c[i * s->n + j] += sign * a.values[i * a.row_stride + k * a.column_stride] *
                           b.values[k * b.row_stride + j * b.column_stride];
}

static void check_kernel(const struct dense_kernel *kernel, const struct dense_sizes *s) {
  double *a = make(s->m * s->k, 1), *b = make(s->k * s->n, 2);
  double *c = make(s->m * s->n, 3), *expected = make(s->m * s->n, 3);
  const struct dense_view left = {a, 1, s->m}; /* a' is stored */
  const struct dense_view right = {b, s->n, 1};
  reference(expected, left, right, s, -1);
  dense_multiply_with(kernel, c, s->n, left, right, s, -1);
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t j = 0; j < s->n; j++)
      if (!s->lower || j <= i) assert_true(c[i * s->n + j] == expected[i * s->n + j]);
  free(expected);
  free(c);
  free(b);
  free(a);
}

static void every_kernel_has_the_bits_of_the_reference(void **state) {
  (void)state;
  const struct dense_kernel *kernels[] = {&dense_kernel_plain, &dense_kernel_avx2,
                                          &dense_kernel_avx512};
  const bool usable[] = {true, __builtin_cpu_supports("avx2") != 0,
                         dense_kernel_pick() == &dense_kernel_avx512};
  const int64_t sizes[] = {1, 3, 17, 63, 64, 65, 130};
  for (int k = 0; k < 3; k++)
    for (int i = 0; usable[k] && i < 7; i++)
      for (int j = 0; j < 7; j++) {
        check_kernel(kernels[k],
                     &(struct dense_sizes){sizes[i], sizes[j], sizes[(i + j) % 7], false});
        check_kernel(kernels[k], &(struct dense_sizes){sizes[i], sizes[i], sizes[j], true});
      }
}

/* B B' + n I, positive definite. */
static double *make_definite(int64_t n) {
  double *b = make(n * n, 5), *a = calloc((size_t)(n * n), sizeof *a);
  assert_non_null(a);
  const struct dense_sizes sizes = {n, n, n, false};
  reference(a, (struct dense_view){b, n, 1}, (struct dense_view){b, 1, n}, &sizes, 1);
  for (int64_t i = 0; i < n; i++) a[i * n + i] += (double)n;
  free(b);
  return a;
}

static double largest_difference(const double *a, const double *b, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(a[i] - b[i]));
  return largest;
}

static void factor_gives_the_matrix_back(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 3, 17, 64, 65, 200};
  for (int s = 0; s < 6; s++) {
    const int64_t n = sizes[s];
    double *a = make_definite(n), *factor = make_definite(n);
    double *product = calloc((size_t)(n * n), sizeof *product);
    assert_ok(dense_cholesky(factor, n, 0));
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i + 1; j < n; j++) assert_true(factor[i * n + j] == 0);
    reference(product, (struct dense_view){factor, n, 1}, (struct dense_view){factor, 1, n},
              &(struct dense_sizes){n, n, n, false}, 1);
    assert_true(largest_difference(product, a, n * n) < 1e-11 * a[0] * (double)n);
    free(product);
    free(factor);
    free(a);
  }
}

static void solution_satisfies_the_equations(void **state) {
  (void)state;
  const int64_t sizes[] = {1, 17, 64, 130};
  const int64_t sides[] = {1, 5, 70, 64};
  for (int s = 0; s < 4; s++) {
    const int64_t n = sizes[s], m = sides[s];
    double *a = make_definite(n), *factor = make_definite(n);
    double *x = make(n * m, 9), *wanted = make(n * m, 9);
    double *product = calloc((size_t)(n * m), sizeof *product);
    assert_ok(dense_cholesky(factor, n, 0));
    dense_solve(factor, x, n, m);
    reference(product, (struct dense_view){a, n, 1}, (struct dense_view){x, m, 1},
              &(struct dense_sizes){n, m, n, false}, 1);
    assert_true(largest_difference(product, wanted, n * m) < 1e-9);
    free(product);
    free(wanted);
    free(x);
    free(factor);
    free(a);
  }
}

static void indefinite_matrix_is_refused(void **state) {
  (void)state;
  double a[] = {1, 2, 2, 1};
  assert_status(STATUS_NUMERIC, dense_cholesky(a, 2, 0));
  assert_non_null(strstr(error_message(), "pivot 1 of 2"));
  double zero[] = {0};
  assert_status(STATUS_NUMERIC, dense_cholesky(zero, 1, 0));
  double bad[] = {NAN};
  assert_status(STATUS_NUMERIC, dense_cholesky(bad, 1, 0));
}

static void jitter_mends_a_singular_matrix(void **state) {
  (void)state;
  double a[] = {1, 1, 1, 1};
  assert_ok(dense_cholesky(a, 2, 1e-8));
  assert_true(fabs(a[0] * a[0] - (1 + 1e-8)) < 1e-15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kernel_has_the_bits_of_the_reference),
      {"R-SCA-3 factor gives the matrix back", factor_gives_the_matrix_back, NULL, NULL, NULL},
      {"R-SCA-3 solution satisfies the equations", solution_satisfies_the_equations, NULL, NULL,
       NULL},
      cmocka_unit_test(indefinite_matrix_is_refused),
      cmocka_unit_test(jitter_mends_a_singular_matrix),
  };
  return cmocka_run_group_tests_name("dense", tests, NULL, NULL);
}
