#include "stages/model/networks/gpt.h"

#include <stdio.h>

#include "stages/model/layers/combine.h"
#include "stages/model/layers/rmsnorm.h"
#include "stages/model/layers/vocab_embedding.h"
#include "stages/model/networks/sequence.h"

static const double epsilon = 1e-6;

static void declare_block(struct gpt_block *block, struct params *params,
                          const struct gpt_config *config, int64_t layer) {
  char prefix[PARAM_NAME_BYTES];
  const int64_t width = config->width;
  const int64_t hidden = config->feedforward ? config->feedforward : swiglu_hidden(width);
  const struct self_attention_options attention = {
      .width = width, .heads = config->heads, .epsilon = epsilon};
  block->layer = params_begin_layer(params);
  block->norm1 =
      params_add_vector(params, width, PARAM_ONE, 0, "blocks.%lld.norm1.weight", (long long)layer);
  snprintf(prefix, sizeof prefix, "blocks.%lld.attn", (long long)layer);
  self_attention_declare(&block->attention, params, &attention, prefix);
  block->norm2 =
      params_add_vector(params, width, PARAM_ONE, 0, "blocks.%lld.norm2.weight", (long long)layer);
  snprintf(prefix, sizeof prefix, "blocks.%lld.mlp", (long long)layer);
  swiglu_declare(&block->mlp, params, width, hidden, false, prefix);
  params_end_layer(params);
}

void gpt_declare(struct gpt *net, struct params *params, const struct gpt_config *config) {
  *net = (struct gpt){.config = *config};
  net->blocks = arena_take(params->arena, (size_t)config->depth * sizeof *net->blocks);
  net->table = params_add_table(params, config->vocabulary, config->width, PARAM_NORMAL, 0.02,
                                "embed.weight");
  for (int64_t i = 0; i < config->depth; i++) declare_block(&net->blocks[i], params, config, i);
  net->final_norm = params_add_vector(params, config->width, PARAM_ONE, 0, "final_norm.weight");
}

struct block_arguments {
  const struct gpt_block *block;
  struct sequence sequence;
};

static struct value *block_forward(struct tape *tape, const void *arguments, struct value *h) {
  const struct block_arguments *given = arguments;
  const struct gpt_block *block = given->block;
  struct value *normed = rmsnorm_forward(tape, h, block->norm1, 1, epsilon);
  h = combine_add(tape, h,
                  self_attention_forward(tape, &block->attention, normed, &given->sequence));
  normed = rmsnorm_forward(tape, h, block->norm2, 1, epsilon);
  return combine_add(tape, h, swiglu_forward(tape, &block->mlp, normed));
}

struct value *gpt_forward(struct tape *tape, const struct gpt *net, struct vocab *vocab,
                          const int32_t *tokens, int64_t batch, int64_t positions) {
  struct value *h = vocab_embedding_forward(tape, vocab, tokens, batch * positions, net->table);
  struct block_arguments arguments = {.sequence = sequence_causal(tape, batch, positions)};
  struct tape_layer layer = {.region = block_forward,
                             .arguments = &arguments,
                             .bytes = sizeof arguments,
                             .recompute = net->config.recompute};
  for (int64_t i = 0; i < net->config.depth; i++) {
    arguments.block = &net->blocks[i];
    layer.weights = arguments.block->layer;
    h = tape_layer(tape, &layer, h);
  }
  return rmsnorm_forward(tape, h, net->final_norm, 1, epsilon);
}
