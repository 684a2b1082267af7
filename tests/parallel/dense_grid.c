/* np: 1 2 3 4 */
#include "sharding/dense_grid.h"

#include <math.h>
#include <string.h>

#include "sharding/dense.h"
#include "tests/common/parallel.h"

enum { N_MAX = 200, M_MAX = 70 };

struct work {
  struct dense_grid grid;
  struct arena scratch;
  double a[N_MAX * N_MAX], copy[N_MAX * N_MAX];
  double x[N_MAX * M_MAX], expected[N_MAX * M_MAX];
};

static struct work work;

/* Symmetric with a dominant diagonal, hence positive definite. */
static void fill(double *a, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++)
      a[i * n + j] = a[j * n + i] =
          (double)((i * 31 + j * 17) % 23) / 23 + (i == j ? (double)n + (double)i : 0);
}

static double difference(const double *a, const double *b, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(a[i] - b[i]));
  return largest;
}

static void open_work(struct parallel_test *test, size_t bytes) {
  parallel_ok(test, dense_grid_init(&work.grid, test->world));
  parallel_ok(test, arena_init(&work.scratch, "test",
                               bytes ? bytes : dense_grid_eigen_scratch(&work.grid, N_MAX)));
}

static void close_work(void) {
  arena_free(&work.scratch);
  dense_grid_free(&work.grid);
}

/* 1 and 3 leave ranks without data, 64 and 65 lie at a block's border. */
static const int64_t sizes[] = {1, 3, 64, 65, 130, N_MAX};

static void factor_equals_serial(struct parallel_test *test) {
  open_work(test, 0);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int64_t n = sizes[s];
    fill(work.a, n);
    fill(work.copy, n);
    parallel_ok(test, dense_grid_cholesky(&work.grid, work.a, n, &work.scratch));
    parallel_ok(test, dense_cholesky(work.copy, n, 0));
    parallel_expect(test, difference(work.a, work.copy, n * n) < 1e-11);
  }
  close_work();
}

static void solution_equals_serial(struct parallel_test *test) {
  open_work(test, 0);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int64_t n = sizes[s], m = 1 + (int64_t)s * 13;
    fill(work.a, n);
    parallel_ok(test, dense_cholesky(work.a, n, 0));
    for (int64_t i = 0; i < n * m; i++) work.x[i] = work.expected[i] = (double)(i % 19) - 9;
    parallel_ok(test, dense_grid_solve(&work.grid, work.a, work.x, n, m, &work.scratch));
    dense_solve(work.a, work.expected, n, m);
    parallel_expect(test, difference(work.x, work.expected, n * m) < 1e-11);
  }
  close_work();
}

/* A v = lambda v, and vectors of length 1 at right angles. */
static void check_eigen(struct parallel_test *test, const double *a, const double *vectors,
                        const double *values, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const double *v = vectors + k * n;
    for (int64_t i = 0; i < n; i++) {
      double sum = 0;
      for (int64_t j = 0; j < n; j++) sum += a[i * n + j] * v[j];
      parallel_expect(test, fabs(sum - values[k] * v[i]) < 1e-10 * (double)(n + n));
    }
    for (int64_t l = 0; l <= k; l++) {
      double product = 0;
      for (int64_t i = 0; i < n; i++) product += v[i] * vectors[l * n + i];
      parallel_expect(test, fabs(product - (k == l)) < 1e-11);
    }
    parallel_expect(test, k == 0 || values[k - 1] <= values[k]);
  }
}

static void eigenvectors_are_right(struct parallel_test *test) {
  open_work(test, 0);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int64_t n = sizes[s];
    double values[N_MAX];
    fill(work.a, n);
    fill(work.copy, n);
    parallel_ok(test, dense_grid_eigen(&work.grid, work.a, values, n, &work.scratch));
    check_eigen(test, work.copy, work.a, values, n);
  }
  close_work();
}

static void indefinite_matrix_is_refused_by_all(struct parallel_test *test) {
  open_work(test, 0);
  fill(work.a, 130);
  work.a[100 * 130 + 100] = -1;
  parallel_expect(test,
                  dense_grid_cholesky(&work.grid, work.a, 130, &work.scratch) == STATUS_NUMERIC);
  parallel_expect(test, strstr(error_message(), "not positive definite") != NULL);
  close_work();
}

static void grids_are_near_square(struct parallel_test *test) {
  const int shapes[][3] = {{1, 1, 1}, {2, 1, 2}, {3, 1, 3}, {4, 2, 2}, {5, 2, 2}, {12, 3, 4}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    int rows, columns;
    dense_grid_shape(&rows, &columns, shapes[i][0]);
    parallel_expect(test, rows == shapes[i][1] && columns == shapes[i][2]);
  }
}

static void too_large_is_refused(struct parallel_test *test) {
  parallel_ok(test, dense_grid_check(46340, 46340, 1, 1));
  parallel_expect(test, dense_grid_check(46341, 46341, 1, 1) == STATUS_MISMATCH);
  parallel_expect(test, strstr(error_message(), "fits is 46340") != NULL);
  parallel_ok(test, dense_grid_check(90000, 90000, 2, 2));
  parallel_expect(test, dense_grid_check(INT64_C(1) << 33, 1, 64, 64) == STATUS_MISMATCH);
  open_work(test, 1 << 20);
  parallel_expect(test, dense_grid_cholesky(&work.grid, work.a, 500000, &work.scratch) ==
                            STATUS_MISMATCH);
  close_work();
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-SCA-2 Cholesky equals the serial one, ranks without data", factor_equals_serial},
      {"R-SCA-3 solve equals the serial one", solution_equals_serial},
      {"R-SCA-1 eigenvectors, workspace computed in 64 bits", eigenvectors_are_right},
      {"an indefinite matrix is refused by all ranks", indefinite_matrix_is_refused_by_all},
      {"R-SCA-2 grids are near square", grids_are_near_square},
      {"R-SCA-1 too large is refused with the largest admissible size", too_large_is_refused},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
