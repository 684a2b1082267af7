/* np: 1 2 3 4 */
#include <math.h>
#include <string.h>

#include "pipeline/base/random.h"
#include "stages/train/muon.h"
#include "tests/common/parallel.h"

enum { LARGEST = 300 * 200 };

static float together[LARGEST], alone[LARGEST];

/* Newton-Schulz in double, as written down (Jordan et al. 2024). */
static void exact(double *x, int64_t n, int64_t m) {
  static double gram[200 * 200], square[200 * 200], next[LARGEST];
  double norm = 0;
  for (int64_t i = 0; i < n * m; i++) norm += x[i] * x[i];
  for (int64_t i = 0; i < n * m; i++) x[i] /= sqrt(norm) + 1e-8;
  for (int step = 0; step < MUON_ITERATIONS; step++) { /* n >= m */
    memset(gram, 0, sizeof gram);
    memset(square, 0, sizeof square);
    for (int64_t k = 0; k < n; k++)
      for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) gram[i * m + j] += x[k * m + i] * x[k * m + j];
    for (int64_t i = 0; i < m; i++)
      for (int64_t k = 0; k < m; k++)
        for (int64_t j = 0; j < m; j++) square[i * m + j] += gram[i * m + k] * gram[k * m + j];
    for (int64_t i = 0; i < m * m; i++) square[i] = -4.7750 * gram[i] + 2.0315 * square[i];
    for (int64_t i = 0; i < n * m; i++) next[i] = 3.4445 * x[i];
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = 0; k < m; k++)
        for (int64_t j = 0; j < m; j++) next[i * m + j] += x[i * m + k] * square[k * m + j];
    memcpy(x, next, (size_t)(n * m) * sizeof *x);
  }
}

static void run(struct parallel_test *test, float *u, struct muon_matrix *matrix) {
  struct arena scratch;
  matrix->scratch = &scratch;
  arena_measure(&scratch, "test");
  parallel_ok(test, muon_orthogonalise(NULL, matrix));
  parallel_ok(test, arena_init(&scratch, "test", scratch.peak));
  parallel_ok(test, muon_orthogonalise(u, matrix));
  parallel_expect(test, scratch.used == 0);
  arena_free(&scratch);
}

/* The largest difference, relative to the size of an element of an orthogonal matrix. */
static double difference(const float *a, const float *b, int64_t n, int64_t m) {
  double largest = 0;
  for (int64_t i = 0; i < n * m; i++)
    largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
  return largest * sqrt((double)(n > m ? n : m));
}

static void compare(struct parallel_test *test, struct dense_grid *grid, int64_t n, int64_t m,
                    int owner) {
  struct kernels kernels;
  parallel_ok(test, kernels_open(&kernels, "reference", DTYPE_F32));
  struct muon_matrix matrix = {
      .rows = n, .cols = m, .fan_out = n, .fan_in = m, .owner = owner, .kernels = &kernels};
  random_fill_normal(alone, n * m, random_open(3, "muon", 0, 0), 0);
  memcpy(together, alone, (size_t)(n * m) * sizeof *alone);
  run(test, alone, &matrix);
  matrix.grid = grid;
  run(test, test->world->rank == owner ? together : NULL, &matrix);
  if (test->world->rank == owner)
    parallel_expect(test, difference(together, alone, n, m) < 1e-4);
}

static void grid_equals_one_rank(struct parallel_test *test) {
  const int64_t shapes[][2] = {{1, 1}, {1, 70}, {64, 64}, {65, 130}, {300, 200}, {200, 300}, {5, 3}};
  struct dense_grid grid;
  parallel_ok(test, dense_grid_init(&grid, test->world));
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int owner = 0; owner < test->world->size; owner++)
      compare(test, &grid, shapes[s][0], shapes[s][1], owner);
  dense_grid_free(&grid);
}

static void grid_equals_doubles(struct parallel_test *test) {
  static double wanted[LARGEST];
  const int64_t n = 300, m = 200;
  struct dense_grid grid;
  struct muon_matrix matrix = {
      .rows = n, .cols = m, .fan_out = m, .fan_in = m, .owner = test->world->size - 1};
  parallel_ok(test, dense_grid_init(&grid, test->world));
  matrix.grid = &grid;
  random_fill_normal(together, n * m, random_open(4, "muon", 0, 0), 0);
  for (int64_t i = 0; i < n * m; i++) wanted[i] = (double)together[i];
  exact(wanted, n, m);
  const bool owns = test->world->rank == matrix.owner;
  run(test, owns ? together : NULL, &matrix);
  for (int64_t i = 0; owns && i < n * m; i++)
    parallel_expect(test, fabs((double)together[i] - wanted[i]) * sqrt((double)n) < 1e-4);
  dense_grid_free(&grid);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-SCA-3 Muon on a grid of ranks equals Muon on one, in F32", grid_equals_one_rank},
      {"R-SCA-3 Muon on a grid equals its definition in double", grid_equals_doubles},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
