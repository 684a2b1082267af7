#include "stages/model/networks/t5_encoder.h"

#include <stdio.h>

#include "stages/model/layers/attention_mask.h"
#include "stages/model/layers/relative_bias.h"
#include "stages/model/layers/rmsnorm.h"

static void declare_block(struct t5_block *block, struct params *params,
                          const struct t5_config *config, int64_t layer) {
  char prefix[PARAM_NAME_BYTES];
  block->layer = params_begin_layer(params);
  snprintf(prefix, sizeof prefix, "encoder.block.%lld.layer.0", (long long)layer);
  t5_attention_declare(&block->attention, params, config, prefix, "SelfAttention");
  snprintf(prefix, sizeof prefix, "encoder.block.%lld.layer.1", (long long)layer);
  t5_feedforward_declare(&block->feedforward, params, config, prefix);
  params_end_layer(params);
}

void t5_encoder_declare(struct t5_encoder *net, struct params *params,
                        const struct t5_config *config, bool frozen) {
  const int64_t first = params->count;
  *net = (struct t5_encoder){.config = *config};
  net->blocks = arena_take(params->arena, (size_t)config->depth * sizeof *net->blocks);
  net->table =
      params_add_table(params, config->vocabulary, config->width, PARAM_NORMAL, 1, "shared.weight");
  net->relative_bias = t5_bias_declare(params, config, "encoder");
  for (int64_t i = 0; i < config->depth; i++) declare_block(&net->blocks[i], params, config, i);
  net->final_norm =
      params_add_vector(params, config->width, PARAM_ONE, 0, "encoder.final_layer_norm.weight");
  for (int64_t i = first; i < params->count; i++) params->items[i]->frozen = frozen;
}

/* NULL without lengths and sources, and on a measuring tape. */
static const struct attention_range *visible_keys(struct tape *tape, const struct t5_input *input) {
  if (input->ranges) return input->ranges;
  if (!input->lengths && !input->sources) return NULL;
  const int64_t batch = input->batch, positions = input->positions;
  struct attention_range *ranges = tape_save(tape, (size_t)(batch * positions) * sizeof *ranges);
  for (int64_t b = 0; ranges && b < batch; b++) {
    const int64_t valid = input->lengths ? input->lengths[b] : positions;
    const int64_t source = input->sources ? input->sources[b] : 0;
    attention_mask_prefix(ranges + b * positions, positions, source, valid, false);
  }
  return ranges;
}

struct block_arguments {
  const struct t5_block *block;
  struct t5_pass pass;
  struct attention mask;
  int64_t number;
};

static struct value *block_forward(struct tape *tape, const void *arguments, struct value *h) {
  const struct block_arguments *given = arguments;
  const struct t5_block *block = given->block;
  char place[PARAM_NAME_BYTES];
  snprintf(place, sizeof place, "encoder.%lld.0", (long long)given->number);
  h = t5_attention_forward(tape, &block->attention, &given->pass, h, NULL, &given->mask, place);
  snprintf(place, sizeof place, "encoder.%lld.1", (long long)given->number);
  return t5_feedforward_forward(tape, &block->feedforward, &given->pass, h, place);
}

static struct attention mask_of(struct tape *tape, const struct t5_encoder *net,
                                const struct t5_input *input) {
  const struct t5_config *config = &net->config;
  const int64_t positions = input->positions;
  return (struct attention){.batch = input->batch,
                            .queries = positions,
                            .keys = positions,
                            .heads = config->heads,
                            .head_dim = config->head_dim,
                            .scale = 1,
                            .ranges = visible_keys(tape, input),
                            .bias = relative_bias_forward(tape, net->relative_bias, positions,
                                                          positions, config->max_distance, true)};
}

struct value *t5_encoder_forward(struct tape *tape, const struct t5_encoder *net,
                                 const struct t5_input *input) {
  const struct t5_config *config = &net->config;
  struct block_arguments arguments = {.pass = {.config = config,
                                               .batch = input->batch,
                                               .positions = input->positions,
                                               .dropout = input->dropout},
                                      .mask = mask_of(tape, net, input)};
  struct tape_layer layer = {.region = block_forward,
                             .arguments = &arguments,
                             .bytes = sizeof arguments,
                             .others = &arguments.mask.bias,
                             .other_count = 1,
                             .recompute = config->recompute};
  struct value *h =
      t5_embed(tape, &arguments.pass, input->vocab, net->table, input->tokens, "encoder.in");
  for (; arguments.number < config->depth; arguments.number++) {
    arguments.block = &net->blocks[arguments.number];
    layer.weights = arguments.block->layer;
    h = tape_layer(tape, &layer, h);
  }
  h = rmsnorm_forward(tape, h, net->final_norm, 1, config->epsilon);
  return t5_drop(tape, &arguments.pass, h, "encoder.out");
}
