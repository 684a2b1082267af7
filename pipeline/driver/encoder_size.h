/* The encoder of an embed node: what it takes to run, from its options or its config.json: the
 * arithmetic of stages/model/networks/t5_encoder, which this layer cannot see. A test compares
 * them.
 */
#ifndef PIPELINE_DRIVER_ENCODER_SIZE_H
#define PIPELINE_DRIVER_ENCODER_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/config/recipe.h"

struct encoder_size {
  int64_t vocabulary, width, heads, inner, feedforward, depth; /* inner: of all heads */
  bool gated;
};

/* The encoder of an embed node; `vocabulary` of its tokens counts where weights are random. An
 * encoder whose config.json is not there (yet) counts as T5-small. Local. */
struct encoder_size encoder_size_of(const struct recipe *recipe, const struct recipe_node *embed,
                                    int64_t vocabulary);

/* Operations of a token in rows of `positions`. Local. */
double encoder_size_flop(const struct encoder_size *size, int64_t positions);

/* Bytes of weights, and of values of `rows` rows of `positions` while the encoder runs; `narrow`:
 * they are bf16. Local. */
int64_t encoder_size_weight_bytes(const struct encoder_size *size, bool narrow);
int64_t encoder_size_value_bytes(const struct encoder_size *size, int64_t rows, int64_t positions,
                                 bool narrow);

#endif
