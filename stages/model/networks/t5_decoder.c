#include "stages/model/networks/t5_decoder.h"

#include <math.h>
#include <stdio.h>

#include "stages/model/layers/attention_mask.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/relative_bias.h"
#include "stages/model/layers/rmsnorm.h"

static int64_t depth_of(const struct t5_config *config) {
  return config->decoder_depth ? config->decoder_depth : config->depth;
}

static void declare_block(struct t5_decoder_block *block, struct params *params,
                          const struct t5_config *config, int64_t layer) {
  char prefix[PARAM_NAME_BYTES];
  block->layer = params_begin_layer(params);
  snprintf(prefix, sizeof prefix, "decoder.block.%lld.layer.0", (long long)layer);
  t5_attention_declare(&block->own, params, config, prefix, "SelfAttention");
  snprintf(prefix, sizeof prefix, "decoder.block.%lld.layer.1", (long long)layer);
  t5_attention_declare(&block->cross, params, config, prefix, "EncDecAttention");
  snprintf(prefix, sizeof prefix, "decoder.block.%lld.layer.2", (long long)layer);
  t5_feedforward_declare(&block->feedforward, params, config, prefix);
  params_end_layer(params);
}

void t5_decoder_declare(struct t5_decoder *net, struct params *params,
                        const struct t5_config *config, struct param *table) {
  const int64_t depth = depth_of(config), width = config->width;
  *net = (struct t5_decoder){.config = *config, .table = table};
  net->blocks = arena_take(params->arena, (size_t)depth * sizeof *net->blocks);
  net->relative_bias = t5_bias_declare(params, config, "decoder");
  for (int64_t i = 0; i < depth; i++) declare_block(&net->blocks[i], params, config, i);
  net->final_norm =
      params_add_vector(params, width, PARAM_ONE, 0, "decoder.final_layer_norm.weight");
  net->head = config->shared_head
                  ? table
                  : params_add_table(params, config->vocabulary, width, PARAM_NORMAL,
                                     1 / sqrt((double)width), "lm_head.weight");
}

struct block_arguments {
  const struct t5_decoder_block *block;
  struct t5_pass pass;
  struct attention own, cross;
  struct value *others[2]; /* the bias and the memory */
  int64_t number;
};

enum { BIAS, MEMORY };

static struct value *block_forward(struct tape *tape, const void *arguments, struct value *h) {
  const struct block_arguments *given = arguments;
  const struct t5_decoder_block *block = given->block;
  char place[PARAM_NAME_BYTES];
  snprintf(place, sizeof place, "decoder.%lld.0", (long long)given->number);
  h = t5_attention_forward(tape, &block->own, &given->pass, h, NULL, &given->own, place);
  snprintf(place, sizeof place, "decoder.%lld.1", (long long)given->number);
  h = t5_attention_forward(tape, &block->cross, &given->pass, h, given->others[MEMORY],
                           &given->cross, place);
  snprintf(place, sizeof place, "decoder.%lld.2", (long long)given->number);
  return t5_feedforward_forward(tape, &block->feedforward, &given->pass, h, place);
}

static const struct attention_range *causal(struct tape *tape, int64_t positions) {
  struct attention_range *ranges = tape_save(tape, (size_t)positions * sizeof *ranges);
  if (ranges) attention_mask_causal(ranges, positions, positions);
  return ranges;
}

/* Every query of a text sees what is valid of its memory. */
static const struct attention_range *visible(struct tape *tape,
                                             const struct t5_decoder_input *input) {
  const int64_t n = input->positions;
  if (!input->memory_lengths) return NULL;
  struct attention_range *ranges = tape_save(tape, (size_t)(input->batch * n) * sizeof *ranges);
  for (int64_t b = 0; ranges && b < input->batch; b++)
    attention_mask_padding(ranges + b * n, n, input->memory_lengths[b]);
  return ranges;
}

static struct block_arguments arguments_of(struct tape *tape, const struct t5_decoder *net,
                                           const struct t5_decoder_input *input) {
  const struct t5_config *config = &net->config;
  const int64_t n = input->positions;
  struct value *bias =
      relative_bias_forward(tape, net->relative_bias, n, n, config->max_distance, false);
  const struct attention own = {.batch = input->batch,
                                .queries = n,
                                .keys = n,
                                .heads = config->heads,
                                .head_dim = config->head_dim,
                                .scale = 1,
                                .ranges = causal(tape, n),
                                .shared_ranges = true,
                                .bias = bias};
  struct attention cross = own;
  cross.keys = input->memory_positions;
  cross.ranges = visible(tape, input);
  cross.shared_ranges = false;
  cross.bias = NULL;
  return (struct block_arguments){
      .pass = {.config = config, .batch = input->batch, .positions = n, .dropout = input->dropout},
      .own = own,
      .cross = cross,
      .others = {[BIAS] = bias, [MEMORY] = input->memory}};
}

struct value *t5_decoder_forward(struct tape *tape, const struct t5_decoder *net,
                                 const struct t5_decoder_input *input) {
  const struct t5_config *config = &net->config;
  struct block_arguments arguments = arguments_of(tape, net, input);
  const struct t5_pass pass = arguments.pass;
  struct tape_layer layer = {.region = block_forward,
                             .arguments = &arguments,
                             .bytes = sizeof arguments,
                             .others = arguments.others,
                             .other_count = 2,
                             .recompute = config->recompute};
  struct value *h = t5_embed(tape, &pass, input->vocab, net->table, input->tokens, "decoder.in");
  for (; arguments.number < depth_of(config); arguments.number++) {
    arguments.block = &net->blocks[arguments.number];
    layer.weights = arguments.block->layer;
    h = tape_layer(tape, &layer, h);
  }
  h = rmsnorm_forward(tape, h, net->final_norm, 1, config->epsilon);
  h = t5_drop(tape, &pass, h, "decoder.out");
  return config->shared_head ? combine_scale(tape, h, 1 / sqrt((double)config->width)) : h;
}
