#include <string.h>

#include "sharding/dense_blacs.h"

static const int one = 1;

static void clear_upper(double *a, int64_t n) {
  for (int64_t i = 0; i < n; i++) memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *a);
}

static enum status factorise(struct dense_grid *grid, double *a, int64_t n, struct arena *scratch) {
  struct dense_piece piece;
  const int size = (int)n;
  int info = 0;
  TRY(comm_agree(grid->comm, dense_piece_take(&piece, grid, n, n, scratch)));
  dense_piece_fill(&piece, grid, a);
  if (grid->context >= 0) pdpotrf_("L", &size, piece.values, &one, &one, piece.descriptor, &info);
  TRY(dense_grid_agree(grid, info, "pdpotrf", "the matrix is not positive definite"));
  TRY(dense_piece_collect(&piece, grid, a));
  clear_upper(a, n);
  return STATUS_OK;
}

enum status dense_grid_cholesky(struct dense_grid *grid, double *a, int64_t n,
                                struct arena *scratch) {
  const size_t mark = arena_mark(scratch);
  const enum status status = factorise(grid, a, n, scratch);
  arena_reset(scratch, mark);
  return status;
}

static enum status solve(struct dense_grid *grid, const double *factor, double *x,
                         struct arena *scratch, int64_t n, int64_t m) {
  struct dense_piece left, right;
  const int size = (int)n, sides = (int)m;
  int info = 0;
  TRY(comm_agree(grid->comm, dense_piece_take(&left, grid, n, n, scratch)));
  TRY(comm_agree(grid->comm, dense_piece_take(&right, grid, n, m, scratch)));
  dense_piece_fill(&left, grid, factor);
  dense_piece_fill(&right, grid, x);
  if (grid->context >= 0)
    pdpotrs_("L", &size, &sides, left.values, &one, &one, left.descriptor, right.values, &one, &one,
             right.descriptor, &info);
  TRY(dense_grid_agree(grid, info, "pdpotrs", "the factor is singular"));
  return dense_piece_collect(&right, grid, x);
}

enum status dense_grid_solve(struct dense_grid *grid, const double *factor, double *x, int64_t n,
                             int64_t m, struct arena *scratch) {
  const size_t mark = arena_mark(scratch);
  const enum status status = solve(grid, factor, x, scratch, n, m);
  arena_reset(scratch, mark);
  return status;
}
