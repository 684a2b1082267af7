#include "stages/model/networks/scalar_embedder.h"

#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/time_embedding.h"

static const double longest_period = 10000;

void scalar_embedder_declare(struct scalar_embedder *embedder, struct params *params, int64_t width,
                             const char *prefix) {
  embedder->mlp_0 = params_add_matrix(params, width, SCALAR_EMBEDDER_SINUSOIDS, PARAM_NORMAL, 0.02,
                                      "%s.mlp_0.weight", prefix);
  embedder->mlp_0_bias = params_add_vector(params, width, PARAM_ZERO, 0, "%s.mlp_0.bias", prefix);
  embedder->mlp_2 =
      params_add_matrix(params, width, width, PARAM_NORMAL, 0.02, "%s.mlp_2.weight", prefix);
  embedder->mlp_2_bias = params_add_vector(params, width, PARAM_ZERO, 0, "%s.mlp_2.bias", prefix);
}

struct value *scalar_embedder_forward(struct tape *tape, const struct scalar_embedder *embedder,
                                      const double *scalars, int64_t n) {
  return scalar_embedder_moving(tape, embedder, scalars, NULL, n);
}

struct value *scalar_embedder_moving(struct tape *tape, const struct scalar_embedder *embedder,
                                     const double *scalars, const double *rates, int64_t n) {
  struct value *waves =
      time_embedding_forward(tape, scalars, n, SCALAR_EMBEDDER_SINUSOIDS, longest_period);
  if (rates) time_embedding_move(tape, waves, scalars, rates, longest_period);
  struct value *inner = linear_forward(tape, waves, embedder->mlp_0, embedder->mlp_0_bias);
  inner = feedforward_activation(tape, inner, ACTIVATION_SILU);
  return linear_forward(tape, inner, embedder->mlp_2, embedder->mlp_2_bias);
}
