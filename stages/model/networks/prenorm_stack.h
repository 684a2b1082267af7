/* The residual stack of gpt and of the ELF backbone: depth x { h += attention(norm(h)); h +=
 * swiglu(norm(h)) } with root mean square norms. */
#ifndef STAGES_MODEL_NETWORKS_PRENORM_STACK_H
#define STAGES_MODEL_NETWORKS_PRENORM_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/networks/self_attention.h"
#include "stages/model/networks/sequence.h"
#include "stages/model/networks/swiglu.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/tape.h"

struct prenorm_stack_config {
  int64_t depth;
  int64_t feedforward; /* inner width of SwiGLU; 0: swiglu_hidden(width) */
  bool recompute;      /* compute the blocks again in backward instead of keeping them */
  struct self_attention_options attention; /* its epsilon and bias are those of the whole block */
};

struct prenorm_block {
  const struct param_layer *layer;
  struct param *norm1, *norm2;
  struct self_attention attention;
  struct swiglu mlp;
  double epsilon;
};

struct prenorm_stack {
  struct prenorm_stack_config config;
  struct prenorm_block *blocks;
};

/* Declares blocks.N.{norm1,attn,norm2,mlp}; the blocks live in the arena of the set. Local. */
void prenorm_stack_declare(struct prenorm_stack *stack, struct params *params,
                           const struct prenorm_stack_config *config);

/* The residual stream after the last block, [n, width] from h[n, width], n rows of the sequences.
 * Local. */
struct value *prenorm_stack_forward(struct tape *tape, const struct prenorm_stack *stack,
                                    struct value *h, const struct sequence *sequence);

#endif
