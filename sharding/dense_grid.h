/* ScaLAPACK on a grid of ranks, for matrices too large for one rank. Results differ in their last
 * bits with the grid (R-SCA-3): the canonical path uses dense.h instead.
 *
 * The grid is as near to square as the ranks allow; ranks that do not fit stand by: they take part
 * in every call without holding data. Matrices are cut into square blocks dealt over the grid
 * (two-dimensional block-cyclic). Callers hold whole matrices, row-major; every call takes the same
 * matrix on every rank and leaves the same result on every rank.
 */
#ifndef SHARDING_DENSE_GRID_H
#define SHARDING_DENSE_GRID_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "sharding/comm.h"

struct dense_grid {
  struct comm *comm; /* borrowed */
  int system;        /* BLACS handle of the communicator */
  int context;       /* BLACS context; -1 on ranks that stand by */
  int rows, columns; /* of the grid */
  int row, column;   /* of this rank; -1 when it stands by */
};

enum { DENSE_GRID_BLOCK = 64 };

/* Lays a grid over a communicator; frees it. Collective over comm. */
enum status dense_grid_init(struct dense_grid *grid, struct comm *comm);
void dense_grid_free(struct dense_grid *grid);

/* The shape of the grid for `ranks` ranks: the largest rows <= columns with rows near the root.
 * Local. */
void dense_grid_shape(int *rows, int *columns, int ranks);

/* Whether an n x m matrix has at most INT32_MAX elements on each rank of a rows x columns grid, as
 * ScaLAPACK's 32-bit indices demand. Local. MISMATCH, naming the largest square that fits. */
enum status dense_grid_check(int64_t n, int64_t m, int rows, int columns);

/* Bytes of scratch that a call on n x n and n x m matrices takes. Local. */
size_t dense_grid_scratch(const struct dense_grid *grid, int64_t n, int64_t m);

/* Replaces a[n][n], symmetric and positive definite, by its Cholesky factor L (lower; upper
 * cleared) by pdpotrf. Takes dense_grid_scratch(n, n) from `scratch` and returns it. Collective.
 * NUMERIC when a pivot is not positive. */
enum status dense_grid_cholesky(struct dense_grid *grid, double *a, int64_t n,
                                struct arena *scratch);

/* x[n][m] = A^-1 x with A = L L' by pdpotrs. Takes dense_grid_scratch(n, m). Collective. */
enum status dense_grid_solve(struct dense_grid *grid, const double *factor, double *x, int64_t n,
                             int64_t m, struct arena *scratch);

/* values[n] = the eigenvalues of a[n][n], symmetric, ascending; row i of a becomes the eigenvector
 * of values[i] (signs are arbitrary) by pdsyevd. The workspace is computed in 64 bits and compared
 * with the routine's own query (R-SCA-1). Takes dense_grid_scratch(n, n) and the workspace, which
 * dense_grid_eigen_scratch adds. Collective. NUMERIC when it does not converge. */
enum status dense_grid_eigen(struct dense_grid *grid, double *a, double *values, int64_t n,
                             struct arena *scratch);
size_t dense_grid_eigen_scratch(const struct dense_grid *grid, int64_t n);

#endif
