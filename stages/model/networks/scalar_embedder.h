/* A scalar condition (time, guidance scale) as a vector: sinusoids, then two linear maps. */
#ifndef STAGES_MODEL_NETWORKS_SCALAR_EMBEDDER_H
#define STAGES_MODEL_NETWORKS_SCALAR_EMBEDDER_H

#include <stdint.h>

#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

enum { SCALAR_EMBEDDER_SINUSOIDS = 256 };

struct scalar_embedder {
  struct param *mlp_0, *mlp_0_bias, *mlp_2, *mlp_2_bias;
};

/* Declares PREFIX.{mlp_0,mlp_2} with biases; matrices N(0, 0.02^2), biases 0. Local. */
void scalar_embedder_declare(struct scalar_embedder *embedder, struct params *params, int64_t width,
                             const char *prefix);

/* y[n, width] = mlp_2 silu(mlp_0 [cos(x f), sin(x f)]), 128 frequencies from 1 down to 1 / 10000;
 * the scalar enters as it is, without a factor. Local. */
struct value *scalar_embedder_forward(struct tape *tape, const struct scalar_embedder *embedder,
                                      const double *scalars, int64_t n);

/* The same, of scalars that change at rates[n] on a moving tape (tangent.h); NULL: of fixed ones.
 * Local. */
struct value *scalar_embedder_moving(struct tape *tape, const struct scalar_embedder *embedder,
                                     const double *scalars, const double *rates, int64_t n);

#endif
