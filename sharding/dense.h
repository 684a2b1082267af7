/* Dense linear algebra on symmetric matrices that belong to a row-sliced table: Gram matrix,
 * Cholesky factor, triangular solves, all in double.
 *
 * The routines of this header are our own serial code (its loops run on the threads of the rank):
 * their bits depend on nothing but the numbers. In the canonical path every member of a group runs
 * them on the same matrix. dense_grid.h shares the work of large matrices over a grid of ranks
 * through ScaLAPACK, whose last bits depend on that grid.
 *
 * Matrices are row-major.
 */
#ifndef SHARDING_DENSE_H
#define SHARDING_DENSE_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/dtype.h"
#include "sharding/vocab.h"

/* How the Gram matrix of a few rows is made: gram[C][C] = rows' rows, in float (at least the lower
 * triangle). The result must not depend on threads. Used on at most DENSE_GRAM_ROWS rows at a time.
 */
struct dense_product {
  void (*gram)(void *context, float *gram, const void *rows, int64_t n, int64_t C);
  void *context; /* borrowed */
};

enum { DENSE_GRAM_ROWS = 1024 };

struct dense_table {
  const void *rows; /* borrowed; this member's rows [rows][C] */
  enum dtype dtype; /* F64, F32 or BF16 */
  int64_t C;
  const struct dense_product *product; /* borrowed; NULL: products in double, slower and exact */
};

/* gram[C][C] = E' E over all rows of a table E[V][C] cut over the vocabulary group, both triangles.
 * Per slice in double, added along the tree over slices: the same bits on every member and for
 * every admissible group size. Takes scratch of tree_depth(slices_local) + 1 matrices and returns
 * it; while `scratch` measures, only that. Collective over the group. */
enum status dense_gram(struct vocab *vocab, double *gram, const struct dense_table *table,
                       struct arena *scratch);

/* Replaces the lower triangle of a[n][n], symmetric and positive definite, by its Cholesky factor
 * L, L L' = A, and clears the upper one. `jitter` times the mean of the diagonal is added to the
 * diagonal first (0 for none). Local. NUMERIC, naming the row, when a pivot is not positive. */
enum status dense_cholesky(double *a, int64_t n, double jitter);

/* x = L^-1 x and x = L'^-1 x for x[n][m] (m right-hand sides). Local. */
void dense_solve_lower(const double *factor, double *x, int64_t n, int64_t m);
void dense_solve_lower_transposed(const double *factor, double *x, int64_t n, int64_t m);

/* x = A^-1 x, with A = L L'. Local. */
void dense_solve(const double *factor, double *x, int64_t n, int64_t m);

#endif
