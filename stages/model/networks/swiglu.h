/* The gated feed-forward part of a block: silu(a) * b, both halves from one map (Shazeer 2020). */
#ifndef STAGES_MODEL_NETWORKS_SWIGLU_H
#define STAGES_MODEL_NETWORKS_SWIGLU_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct swiglu {
  struct param *w12, *w12_bias, *w3, *w3_bias;
};

/* The usual inner width for a width: two thirds of four times it. Local. */
static inline int64_t swiglu_hidden(int64_t width) {
  return 4 * width * 2 / 3;
}

/* Declares PREFIX.{w12,w3}: [2 hidden, width] and [width, hidden], Xavier-uniform. Local. */
void swiglu_declare(struct swiglu *mlp, struct params *params, int64_t width, int64_t hidden,
                    bool bias, const char *prefix);

/* y[n, width] from x[n, width]. Local. */
struct value *swiglu_forward(struct tape *tape, const struct swiglu *mlp, struct value *x);

#endif
