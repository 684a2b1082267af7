/* Muon: momentum against its formula in double, and what Newton-Schulz makes of a matrix. */
#include <math.h>
#include <stdlib.h>

#include "pipeline/base/random.h"
#include "stages/train/muon.h"
#include "tests/common/tap.h"

static void momentum_follows_its_formula(void **state) {
  (void)state;
  const float gradients[3] = {0.5f, -2, 0.25f};
  float m = 0, u;
  double exact = 0;
  for (int k = 1; k <= 3; k++) {
    const double g = 0.5 * (double)gradients[k - 1];
    muon_momentum(&u, &m, gradients + k - 1, 1, 0.95, 0.5, k);
    exact = 0.95 * exact + 0.05 * g;
    const double wanted = 0.95 * exact / (1 - pow(0.95, k + 1)) + 0.05 * g / (1 - pow(0.95, k));
    assert_near((double)m, exact, 1e-7);
    assert_near((double)u, wanted, 1e-6);
  }
}

static void orthogonalise(float *u, int64_t rows, int64_t cols) {
  struct kernels kernels;
  struct arena scratch;
  assert_ok(kernels_open(&kernels, "reference", DTYPE_F32));
  struct muon_matrix matrix = {.rows = rows,
                               .cols = cols,
                               .fan_out = rows,
                               .fan_in = cols,
                               .kernels = &kernels,
                               .scratch = &scratch};
  arena_measure(&scratch, "scratch");
  assert_ok(muon_orthogonalise(NULL, &matrix));
  assert_ok(arena_init(&scratch, "scratch", scratch.peak));
  assert_ok(muon_orthogonalise(u, &matrix));
  assert_int_equal(scratch.used, 0);
  arena_free(&scratch);
}

/* The singular values after five steps lie between 0.7 and 1.2 (Jordan et al. 2024), so that the
 * Gram matrix of the shorter side is near one. */
static void check_shape(int64_t rows, int64_t cols) {
  float *u = malloc((size_t)(rows * cols) * sizeof *u);
  random_fill_normal(u, rows * cols, random_open(7, "muon", 0, 0), 0);
  orthogonalise(u, rows, cols);
  const double ratio = (double)rows / (double)cols, scale = ratio > 1 ? ratio : 1;
  const int64_t n = rows < cols ? rows : cols, all = rows < cols ? cols : rows;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      double dot = 0;
      for (int64_t k = 0; k < all; k++)
        dot += rows < cols ? (double)u[i * cols + k] * (double)u[j * cols + k]
                           : (double)u[k * cols + i] * (double)u[k * cols + j];
      assert_near(dot / scale, i == j ? 1 : 0, i == j ? 0.55 : 0.4);
    }
  free(u);
}

static void rows_become_orthogonal(void **state) {
  (void)state;
  check_shape(12, 48);
  check_shape(48, 12);
  check_shape(17, 64);
  check_shape(1, 9);
}

/* One step of the iteration on a diagonal matrix is the polynomial of its entries. */
static void singular_values_follow_the_polynomial(void **state) {
  (void)state;
  float u[4] = {3, 0, 0, 4};
  orthogonalise(u, 2, 2);
  double exact[2] = {0.6, 0.8};
  for (int i = 0; i < 2; i++)
    for (int step = 0; step < MUON_ITERATIONS; step++) {
      const double s = exact[i], square = s * s;
      exact[i] = s * (3.4445 - 4.7750 * square + 2.0315 * square * square);
    }
  assert_near((double)u[0], exact[0], 1e-5);
  assert_near((double)u[3], exact[1], 1e-5);
  assert_near((double)u[1], 0, 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(momentum_follows_its_formula),
      cmocka_unit_test(rows_become_orthogonal),
      cmocka_unit_test(singular_values_follow_the_polynomial),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
