#include "stages/model/networks/prenorm_stack.h"

#include <stdio.h>

#include "stages/model/layers/combine.h"
#include "stages/model/layers/rmsnorm.h"

static void declare_block(struct prenorm_block *block, struct params *params,
                          const struct prenorm_stack_config *config, int64_t number) {
  char prefix[PARAM_NAME_BYTES];
  const long long n = number;
  const struct self_attention_options *attention = &config->attention;
  const int64_t width = attention->width;
  const int64_t hidden = config->feedforward ? config->feedforward : swiglu_hidden(width);
  block->epsilon = attention->epsilon;
  block->layer = params_begin_layer(params);
  block->norm1 = params_add_vector(params, width, PARAM_ONE, 0, "blocks.%lld.norm1.weight", n);
  snprintf(prefix, sizeof prefix, "blocks.%lld.attn", n);
  self_attention_declare(&block->attention, params, attention, prefix);
  block->norm2 = params_add_vector(params, width, PARAM_ONE, 0, "blocks.%lld.norm2.weight", n);
  snprintf(prefix, sizeof prefix, "blocks.%lld.mlp", n);
  swiglu_declare(&block->mlp, params, width, hidden, attention->bias, prefix);
  params_end_layer(params);
}

void prenorm_stack_declare(struct prenorm_stack *stack, struct params *params,
                           const struct prenorm_stack_config *config) {
  *stack = (struct prenorm_stack){
      .config = *config,
      .blocks = arena_take(params->arena, (size_t)config->depth * sizeof *stack->blocks)};
  for (int64_t i = 0; i < config->depth; i++) declare_block(&stack->blocks[i], params, config, i);
}

struct block_arguments {
  const struct prenorm_block *block;
  struct sequence sequence;
};

static struct value *block_forward(struct tape *tape, const void *arguments, struct value *h) {
  const struct block_arguments *given = arguments;
  const struct prenorm_block *block = given->block;
  struct value *normed = rmsnorm_forward(tape, h, block->norm1, 1, block->epsilon);
  h = combine_add(tape, h,
                  self_attention_forward(tape, &block->attention, normed, &given->sequence));
  normed = rmsnorm_forward(tape, h, block->norm2, 1, block->epsilon);
  return combine_add(tape, h, swiglu_forward(tape, &block->mlp, normed));
}

struct value *prenorm_stack_forward(struct tape *tape, const struct prenorm_stack *stack,
                                    struct value *h, const struct sequence *sequence) {
  struct block_arguments arguments = {.sequence = *sequence};
  struct tape_layer layer = {.region = block_forward,
                             .arguments = &arguments,
                             .bytes = sizeof arguments,
                             .recompute = stack->config.recompute};
  for (int64_t i = 0; i < stack->config.depth; i++) {
    arguments.block = &stack->blocks[i];
    layer.weights = arguments.block->layer;
    h = tape_layer(tape, &layer, h);
  }
  return h;
}
