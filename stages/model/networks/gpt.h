/* A causal language model of the present kind: root mean square pre-norms, rotary positions
 * (half-split), normalised q and k, SwiGLU, no biases, one table for input and output.
 */
#ifndef STAGES_MODEL_NETWORKS_GPT_H
#define STAGES_MODEL_NETWORKS_GPT_H

#include <stdbool.h>
#include <stdint.h>

#include "sharding/vocab.h"
#include "stages/model/networks/prenorm_stack.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct gpt_config {
  int64_t depth, width, heads;
  int64_t feedforward; /* inner width; 0: swiglu_hidden(width) */
  int64_t vocabulary;
  bool recompute; /* compute the blocks again in backward instead of keeping them */
};

struct gpt {
  struct gpt_config config;
  struct param *table; /* [V, width]: input embedding and output head; may be sliced by rows */
  struct prenorm_stack stack;
  struct param *final_norm;
};

/* Declares embed.weight, the blocks of prenorm_stack.h and final_norm into `params`. Local. */
void gpt_declare(struct gpt *net, struct params *params, const struct gpt_config *config);

/* Hidden states [batch * positions, width] for the vocabulary head (net->table): row i knows
 * tokens 0 .. i of its sequence and predicts token i + 1. tokens[batch * positions] is borrowed
 * until backward. Collective over the vocabulary group. */
struct value *gpt_forward(struct tape *tape, const struct gpt *net, struct vocab *vocab,
                          const int32_t *tokens, int64_t batch, int64_t positions);

#endif
