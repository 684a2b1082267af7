/* Letters: n rows, H heads, D head width. */
#include "stages/model/networks/t5_encoder.h"

#include <math.h>

#include "stages/model/layers/attention.h"
#include "stages/model/layers/attention_mask.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/embedding.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/relative_bias.h"
#include "stages/model/layers/rmsnorm.h"

/* A matrix of one layer; its initial values have the deviation `scale`. */
static struct param *matrix(struct params *params, int64_t layer, const char *name, int64_t rows,
                            int64_t cols, double scale) {
  return params_add_matrix(params, rows, cols, PARAM_NORMAL, scale,
                           "encoder.block.%lld.layer.%s.weight", (long long)layer, name);
}

static struct param *norm(struct params *params, int64_t layer, const char *name, int64_t width) {
  return params_add_vector(params, width, PARAM_ONE, 0, "encoder.block.%lld.layer.%s.weight",
                           (long long)layer, name);
}

static void declare_attention(struct t5_block *block, struct params *params,
                              const struct t5_config *config, int64_t layer) {
  const int64_t inner = config->heads * config->head_dim, width = config->width;
  const double scale = 1 / sqrt((double)width),
               query_scale = scale / sqrt((double)config->head_dim);
  block->norm_attention = norm(params, layer, "0.layer_norm", width);
  block->q = matrix(params, layer, "0.SelfAttention.q", inner, width, query_scale);
  block->k = matrix(params, layer, "0.SelfAttention.k", inner, width, scale);
  block->v = matrix(params, layer, "0.SelfAttention.v", inner, width, scale);
  block->o = matrix(params, layer, "0.SelfAttention.o", width, inner, 1 / sqrt((double)inner));
}

static void declare_feedforward(struct t5_block *block, struct params *params,
                                const struct t5_config *config, int64_t layer) {
  const int64_t width = config->width, inner = config->feedforward;
  const double scale = 1 / sqrt((double)width);
  block->norm_feedforward = norm(params, layer, "1.layer_norm", width);
  block->wi = matrix(params, layer, config->gated ? "1.DenseReluDense.wi_0" : "1.DenseReluDense.wi",
                     inner, width, scale);
  block->wi_gated =
      config->gated ? matrix(params, layer, "1.DenseReluDense.wi_1", inner, width, scale) : NULL;
  block->wo = matrix(params, layer, "1.DenseReluDense.wo", width, inner, 1 / sqrt((double)inner));
}

void t5_encoder_declare(struct t5_encoder *net, struct params *params,
                        const struct t5_config *config, bool frozen) {
  const int64_t first = params->count;
  *net = (struct t5_encoder){.config = *config};
  net->blocks = arena_take(params->arena, (size_t)config->depth * sizeof *net->blocks);
  net->table =
      params_add_table(params, config->vocabulary, config->width, PARAM_NORMAL, 1, "shared.weight");
  net->relative_bias = matrix(params, 0, "0.SelfAttention.relative_attention_bias", config->buckets,
                              config->heads, 1 / sqrt((double)config->width));
  for (int64_t i = 0; i < config->depth; i++) {
    declare_attention(&net->blocks[i], params, config, i);
    declare_feedforward(&net->blocks[i], params, config, i);
  }
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

static struct value *feedforward(struct tape *tape, const struct t5_block *block, struct value *x) {
  struct value *inner = linear_forward(tape, x, block->wi, NULL);
  if (block->wi_gated) {
    struct value *linear = linear_forward(tape, x, block->wi_gated, NULL);
    inner = feedforward_gated(tape, combine_columns(tape, inner, linear), ACTIVATION_GELU);
  } else {
    inner = feedforward_activation(tape, inner, ACTIVATION_RELU);
  }
  return linear_forward(tape, inner, block->wo, NULL);
}

static struct value *block_forward(struct tape *tape, const struct t5_encoder *net,
                                   const struct t5_block *block, struct value *h,
                                   const struct attention *shape) {
  const double epsilon = net->config.epsilon;
  struct value *x = rmsnorm_forward(tape, h, block->norm_attention, 1, epsilon);
  struct value *q = linear_forward(tape, x, block->q, NULL);
  struct value *k = linear_forward(tape, x, block->k, NULL);
  struct value *v = linear_forward(tape, x, block->v, NULL);
  struct value *mixed = attention_forward(tape, q, k, v, shape);
  h = combine_add(tape, h, linear_forward(tape, mixed, block->o, NULL));
  x = rmsnorm_forward(tape, h, block->norm_feedforward, 1, epsilon);
  return combine_add(tape, h, feedforward(tape, block, x));
}

struct value *t5_encoder_forward(struct tape *tape, const struct t5_encoder *net,
                                 const struct t5_input *input) {
  const struct t5_config *config = &net->config;
  const int64_t positions = input->positions;
  struct value *h = embedding_forward(tape, input->tokens, input->batch * positions, net->table);
  const struct attention shape = {.batch = input->batch,
                                  .queries = positions,
                                  .keys = positions,
                                  .heads = config->heads,
                                  .head_dim = config->head_dim,
                                  .scale = 1,
                                  .ranges = visible_keys(tape, input),
                                  .bias =
                                      relative_bias_forward(tape, net->relative_bias, positions,
                                                            positions, config->max_distance, true)};
  for (int64_t i = 0; i < config->depth; i++)
    h = block_forward(tape, net, &net->blocks[i], h, &shape);
  return rmsnorm_forward(tape, h, net->final_norm, 1, config->epsilon);
}
