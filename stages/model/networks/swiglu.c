#include "stages/model/networks/swiglu.h"

#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"

void swiglu_declare(struct swiglu *mlp, struct params *params, int64_t width, int64_t hidden,
                    bool bias, const char *prefix) {
  *mlp = (struct swiglu){0};
  mlp->w12 = params_add_matrix(params, 2 * hidden, width, PARAM_XAVIER_UNIFORM, 1, "%s.w12.weight",
                               prefix);
  if (bias)
    mlp->w12_bias = params_add_vector(params, 2 * hidden, PARAM_ZERO, 0, "%s.w12.bias", prefix);
  mlp->w3 =
      params_add_matrix(params, width, hidden, PARAM_XAVIER_UNIFORM, 1, "%s.w3.weight", prefix);
  if (bias) mlp->w3_bias = params_add_vector(params, width, PARAM_ZERO, 0, "%s.w3.bias", prefix);
}

struct value *swiglu_forward(struct tape *tape, const struct swiglu *mlp, struct value *x) {
  struct value *both = linear_forward(tape, x, mlp->w12, mlp->w12_bias);
  struct value *gated = feedforward_gated(tape, both, ACTIVATION_SILU);
  return linear_forward(tape, gated, mlp->w3, mlp->w3_bias);
}
