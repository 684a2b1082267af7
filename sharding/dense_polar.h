/* The orthogonal factor of a matrix whose products are too much for the one rank that holds it, by
 * Newton-Schulz steps through PBLAS on a grid of ranks (dense_grid.h). F32. Results differ in their
 * last bits with the grid (R-SCA-3).
 */
#ifndef SHARDING_DENSE_POLAR_H
#define SHARDING_DENSE_POLAR_H

#include "sharding/dense_grid.h"

struct dense_polar {
  int64_t rows, columns;
  int owner; /* rank that holds the matrix */
  int steps; /* x = a x + x (b g + c g^2) with g = x' x, or the same from the left */
  float a, b, c;
  double tiny; /* x is divided by its Frobenius norm + tiny first */
};

/* Bytes of scratch that every rank needs. Local. */
size_t dense_polar_scratch(const struct dense_grid *grid, const struct dense_polar *polar);

/* Replaces x[rows][columns] on the owner by its orthogonal factor; `x` is not used elsewhere.
 * Collective over the grid's communicator. MISMATCH as dense_grid_check. */
enum status dense_polar_make(struct dense_grid *grid, float *x, const struct dense_polar *polar,
                             struct arena *scratch);

#endif
