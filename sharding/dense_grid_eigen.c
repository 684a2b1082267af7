#include <inttypes.h>

#include "sharding/dense_blacs.h"

static const int one = 1;

/* Sizes of pdsyevd's work arrays, in elements. */
struct workspace {
  int64_t reals, integers;
};

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* pdsyevd's own formula in 64 bits, from the fullest piece, with a margin: the library computes it
 * in 32 bits and some versions ask for too little. */
static struct workspace workspace_for(const struct dense_grid *grid, int64_t n) {
  const int64_t block = DENSE_GRID_BLOCK;
  const int64_t rows = (n / block / grid->rows + 1) * block;
  const int64_t columns = (n / block / grid->columns + 1) * block;
  const int64_t tridiagonal = larger(block * (rows + 1), 3 * block);
  return (struct workspace){.reals = larger(1 + 6 * n + 2 * rows * columns, tridiagonal) + 2 * n +
                                     block * block + 4096,
                            .integers = 7 * n + 8 * (int64_t)grid->columns + 2 + 4096};
}

static size_t rounded(int64_t bytes) {
  return ((size_t)bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

size_t dense_grid_eigen_scratch(const struct dense_grid *grid, int64_t n) {
  const struct workspace workspace = workspace_for(grid, n);
  return dense_grid_scratch(grid, n, n) + rounded(workspace.reals * (int64_t)sizeof(double)) +
         rounded(workspace.integers * (int64_t)sizeof(int));
}

struct eigen {
  struct dense_piece matrix, vectors;
  double *values;
};

static int call(struct eigen *eigen, double *reals, int real_count, int *integers,
                int integer_count) {
  const int n = (int)eigen->matrix.n;
  int info = 0;
  pdsyevd_("V", "L", &n, eigen->matrix.values, &one, &one, eigen->matrix.descriptor, eigen->values,
           eigen->vectors.values, &one, &one, eigen->vectors.descriptor, reals, &real_count,
           integers, &integer_count, &info);
  return info;
}

/* Asks the routine what it wants and compares it with what we take. */
static enum status check_workspace(struct eigen *eigen, const struct workspace *workspace) {
  double reals[2] = {0};
  int integers[2] = {0};
  const int info = call(eigen, reals, -1, integers, -1);
  CHECK(info == 0, STATUS_INTERNAL, "pdsyevd refuses argument %d in its query", -info);
  CHECK(reals[0] <= (double)workspace->reals && integers[0] <= workspace->integers, STATUS_INTERNAL,
        "pdsyevd wants %.0f reals and %d integers; computed %" PRId64 " and %" PRId64, reals[0],
        integers[0], workspace->reals, workspace->integers);
  return STATUS_OK;
}

static enum status take(struct eigen *eigen, const struct dense_grid *grid, int64_t n,
                        const struct workspace *workspace, struct arena *scratch) {
  CHECK(workspace->reals <= INT32_MAX && workspace->integers <= INT32_MAX, STATUS_MISMATCH,
        "eigenvectors of a matrix of %" PRId64 " rows need a workspace of %" PRId64
        " elements; ScaLAPACK admits 2^31 - 1: use more ranks",
        n, workspace->reals);
  TRY(dense_piece_take(&eigen->matrix, grid, n, n, scratch));
  TRY(dense_piece_take(&eigen->vectors, grid, n, n, scratch));
  return STATUS_OK;
}

static enum status run(struct dense_grid *grid, struct eigen *eigen, double *a,
                       struct arena *scratch) {
  const int64_t n = eigen->matrix.n;
  const struct workspace workspace = workspace_for(grid, n);
  double *reals = arena_take(scratch, (size_t)workspace.reals * sizeof *reals);
  int *integers = arena_take(scratch, (size_t)workspace.integers * sizeof *integers);
  const bool works = grid->context >= 0;
  int info = 0;
  dense_piece_fill(&eigen->matrix, grid, a);
  TRY(comm_agree(grid->comm, works ? check_workspace(eigen, &workspace) : STATUS_OK));
  if (works) info = call(eigen, reals, (int)workspace.reals, integers, (int)workspace.integers);
  TRY(dense_grid_agree(grid, info, "pdsyevd", "it does not converge"));
  TRY(dense_piece_collect(&eigen->vectors, grid, a));
  return comm_broadcast(grid->comm, eigen->values, n * (int64_t)sizeof *eigen->values, 0);
}

static void transpose(double *a, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++) {
      const double element = a[i * n + j];
      a[i * n + j] = a[j * n + i];
      a[j * n + i] = element;
    }
}

enum status dense_grid_eigen(struct dense_grid *grid, double *a, double *values, int64_t n,
                             struct arena *scratch) {
  const size_t mark = arena_mark(scratch);
  const struct workspace workspace = workspace_for(grid, n);
  struct eigen eigen = {.values = values};
  enum status status = comm_agree(grid->comm, take(&eigen, grid, n, &workspace, scratch));
  if (status == STATUS_OK) status = run(grid, &eigen, a, scratch);
  if (status == STATUS_OK) transpose(a, n);
  arena_reset(scratch, mark);
  return status;
}
