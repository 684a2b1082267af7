/* Muon (Jordan et al. 2024; constants as in optax.contrib.muon): momentum
 * whose matrix is orthogonalised before it is applied.
 */
#ifndef STAGES_TRAIN_MUON_H
#define STAGES_TRAIN_MUON_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "sharding/dense_grid.h"
#include "sharding/vocab.h"
#include "stages/model/kernels/kernels.h"

enum { MUON_ITERATIONS = 5 };

/* A matrix, this rank's rows of one that is cut over a vocabulary group, or one that `owner` holds
 * and the ranks of a grid work on together. */
struct muon_matrix {
  int64_t rows, cols;      /* held here */
  int64_t fan_out, fan_in; /* global rows and columns */
  struct vocab *vocab;     /* borrowed; NULL: whole. When set, cols <= fan_out */
  struct dense_grid *grid; /* borrowed; NULL: this rank works alone. When set, vocab is NULL */
  int owner;               /* rank of the grid's communicator that holds the matrix */
  const struct kernels *kernels; /* borrowed; F32 */
  struct arena *scratch;         /* borrowed; may be measuring; returned as it was */
};

/* The k-th update of the momentum (k from 1), with g = gradient_scale * gradient:
 *   m = beta m + (1 - beta) g, u = beta m / (1 - beta^(k + 1)) + (1 - beta) g / (1 - beta^k).
 * u receives the Nesterov momentum with its bias corrected. Local. */
void muon_momentum(float *u, float *m, const float *gradient, int64_t count, double beta,
                   double gradient_scale, int64_t k);

/* Replaces u[rows, cols] by its orthogonalisation, about U V' of its singular vectors, times
 * sqrt(max(1, fan_out / fan_in)): u / (|u| + 1e-8), then five Newton-Schulz steps with coefficients
 * (3.4445, -4.7750, 2.0315) in F32. A cut matrix sums its products along the tree over vocabulary
 * slices: the same bits for every group size. On a grid the products are PBLAS's and `u` is used on
 * the owner only: equal to the others up to rounding. Local for a whole matrix, else collective
 * over the group or the grid's communicator. */
enum status muon_orthogonalise(float *u, const struct muon_matrix *matrix);

#endif
