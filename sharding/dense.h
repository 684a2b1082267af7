/* Dense linear algebra on symmetric matrices that belong to a row-sliced table: Gram matrix,
 * Cholesky factor, triangular solves, all in double.
 *
 * The deterministic routines (dense_*) are our own serial code; in the canonical path every member
 * of a group runs them on the same numbers and gets the same bits. The ScaLAPACK routines
 * (dense_grid.h) share the work over a grid of ranks; their last bits depend on that grid.
 *
 * Matrices are row-major, n x n, `a[i * n + j]`.
 */
#ifndef SHARDING_DENSE_H
#define SHARDING_DENSE_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/dtype.h"
#include "sharding/vocab.h"

/* gram[C][C] = E' E over all rows of a table E[V][C] cut over the vocabulary group; `table` are
 * this member's rows (F32 or BF16). Per slice in double, added along the tree over slices: the same
 * bits on every member and for every admissible group size. Takes scratch of
 * tree_depth(slices_local) + 1 matrices. Collective over the group. */
enum status dense_gram(struct vocab *vocab, double *gram, const void *table, enum dtype dtype,
                       int64_t C, struct arena *scratch);

/* Replaces the lower triangle of a (n x n, symmetric, positive definite) by its Cholesky factor L,
 * L L' = A, and clears the upper one. `jitter` times the mean of the diagonal is added to the
 * diagonal first (0 for none). Local. NUMERIC, naming the row, when a pivot is not positive. */
enum status dense_cholesky(double *a, int64_t n, double jitter);

/* x = L^-1 x and x = L'^-1 x for x[n][m] (m right-hand sides). Local. */
void dense_solve_lower(const double *factor, double *x, int64_t n, int64_t m);
void dense_solve_lower_transposed(const double *factor, double *x, int64_t n, int64_t m);

/* x = A^-1 x, with A = L L'. Local. */
void dense_solve(const double *factor, double *x, int64_t n, int64_t m);

#endif
