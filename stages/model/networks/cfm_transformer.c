/* Letters: n rows, d state width, D width, C condition width. */
#include "stages/model/networks/cfm_transformer.h"

#include <stdio.h>

#include "stages/model/layers/combine.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/modulate.h"
#include "stages/model/layers/rmsnorm.h"
#include "stages/model/networks/sequence.h"

static const double epsilon = 1e-6;

/* How a matrix that reads channels of the width starts and learns. */
static void start_matrix(const struct cfm_transformer_config *config, struct param *matrix) {
  if (config->spectral) matrix->init = PARAM_SPECTRAL;
  if (config->rate > 0) matrix->rate = config->rate;
}

/* Normalised vectors must not start at zero, where the norm has no slope that is of use. */
static enum param_init modulation_init(const struct cfm_transformer_config *config) {
  return config->bounded ? PARAM_FAN_IN_NORMAL : PARAM_ZERO;
}

static void declare_block(struct cfm_block *block, struct params *params,
                          const struct cfm_transformer_config *config, int64_t layer) {
  char prefix[PARAM_NAME_BYTES];
  const int64_t width = config->width;
  const int64_t hidden = config->feedforward ? config->feedforward : swiglu_hidden(width);
  const struct self_attention_options attention = {
      .width = width, .heads = config->heads, .plain = config->plain_attention, .epsilon = epsilon};
  block->layer = params_begin_layer(params);
  if (!config->shared)
    block->modulation =
        params_add_matrix(params, 6 * width, config->condition, modulation_init(config), 1,
                          "blocks.%lld.modulation.weight", (long long)layer);
  block->modulation_bias = params_add_vector(params, 6 * width, PARAM_ZERO, 0,
                                             "blocks.%lld.modulation.bias", (long long)layer);
  snprintf(prefix, sizeof prefix, "blocks.%lld.attn", (long long)layer);
  self_attention_declare(&block->attention, params, &attention, prefix);
  snprintf(prefix, sizeof prefix, "blocks.%lld.mlp", (long long)layer);
  swiglu_declare(&block->mlp, params, width, hidden, false, prefix);
  struct param *const matrices[] = {block->attention.qkv, block->attention.proj, block->mlp.w12,
                                    block->mlp.w3};
  for (int i = 0; i < 4; i++) start_matrix(config, matrices[i]);
  params_end_layer(params);
}

void cfm_transformer_declare(struct cfm_transformer *net, struct params *params,
                             const struct cfm_transformer_config *config) {
  const int64_t width = config->width;
  *net = (struct cfm_transformer){.config = *config};
  net->blocks = arena_take(params->arena, (size_t)config->depth * sizeof *net->blocks);
  net->input = params_add_matrix(params, width, config->state_width, PARAM_XAVIER_UNIFORM, 1,
                                 "input.weight");
  start_matrix(config, net->input);
  net->input_bias = params_add_vector(params, width, PARAM_ZERO, 0, "input.bias");
  if (config->flag)
    net->flag = params_add_tokens(params, 1, width, PARAM_ZERO, 0, "clean_flag.weight");
  scalar_embedder_declare(&net->from, params, config->condition, "s_embedder");
  scalar_embedder_declare(&net->span, params, config->condition, "span_embedder");
  if (config->shared)
    net->modulation = params_add_matrix(params, 6 * width, config->condition,
                                        modulation_init(config), 1, "modulation.weight");
  for (int64_t i = 0; i < config->depth; i++) {
    net->blocks[i] = (struct cfm_block){.modulation = net->modulation, .bounded = config->bounded};
    declare_block(&net->blocks[i], params, config, i);
  }
  net->final_modulation = params_add_matrix(params, 2 * width, config->condition,
                                            modulation_init(config), 1, "final.modulation.weight");
  net->final_modulation_bias =
      params_add_vector(params, 2 * width, PARAM_ZERO, 0, "final.modulation.bias");
}

/* `chunks` vectors of the width, one row each of c; normalised one by one when bounded. */
static struct value *modulation(struct tape *tape, struct value *c, struct param *matrix,
                                struct param *bias, int64_t chunks, bool bounded) {
  struct value *m = linear_forward(tape, c, matrix, bias);
  return bounded ? rmsnorm_forward(tape, m, NULL, chunks, epsilon) : m;
}

/* The i-th chunk of a modulation vector. */
static struct value *chunk(struct tape *tape, struct value *modulation, int64_t width, int64_t i) {
  return tape_columns(tape, modulation, i * width, width);
}

/* modulate(norm(h)) by chunks first (shift) and first + 1 (scale). */
static struct value *modulated_norm(struct tape *tape, struct value *h, struct value *modulation,
                                    int64_t first, int64_t positions) {
  struct value *normed = rmsnorm_forward(tape, h, NULL, 1, epsilon);
  return modulate_forward(tape, normed, chunk(tape, modulation, h->cols, first),
                          chunk(tape, modulation, h->cols, first + 1), positions);
}

struct block_arguments {
  const struct cfm_block *block;
  struct sequence sequence;
  struct value *condition;
};

static struct value *block_forward(struct tape *tape, const void *arguments, struct value *h) {
  const struct block_arguments *given = arguments;
  const struct cfm_block *block = given->block;
  const int64_t positions = given->sequence.positions, width = h->cols;
  struct value *m = modulation(tape, given->condition, block->modulation, block->modulation_bias, 6,
                               block->bounded);
  struct value *branch = self_attention_forward(
      tape, &block->attention, modulated_norm(tape, h, m, 0, positions), &given->sequence);
  h = modulate_gate(tape, h, branch, chunk(tape, m, width, 2), positions);
  branch = swiglu_forward(tape, &block->mlp, modulated_norm(tape, h, m, 3, positions));
  return modulate_gate(tape, h, branch, chunk(tape, m, width, 5), positions);
}

static double *difference(struct tape *tape, const double *to, const double *from, int64_t batch) {
  double *span = arena_take(tape->records, (size_t)batch * sizeof *span);
  for (int64_t b = 0; b < batch; b++) span[b] = (to ? to[b] : 0) - (from ? from[b] : 0);
  return span;
}

/* c[batch, C] of both times. */
static struct value *condition(struct tape *tape, const struct cfm_transformer *net,
                               const struct cfm_times *times, int64_t batch) {
  const double *span = difference(tape, times->to, times->from, batch);
  const double *span_rate = times->from_rate || times->to_rate
                                ? difference(tape, times->to_rate, times->from_rate, batch)
                                : NULL;
  struct value *start =
      scalar_embedder_moving(tape, &net->from, times->from, times->from_rate, batch);
  struct value *length = scalar_embedder_moving(tape, &net->span, span, span_rate, batch);
  return feedforward_activation(tape, combine_add(tape, start, length), ACTIVATION_SILU);
}

struct value *cfm_transformer_forward(struct tape *tape, const struct cfm_transformer *net,
                                      struct value *y, const struct cfm_times *times, int64_t batch,
                                      int64_t positions) {
  struct value *c = condition(tape, net, times, batch);
  struct value *h = linear_forward(tape, y, net->input, net->input_bias);
  if (net->flag && times->clean)
    h = combine_add(tape, h, combine_tokens(tape, net->flag, times->clean, NULL, y->rows));
  struct block_arguments arguments = {.sequence = sequence_full(tape, batch, 0, positions),
                                      .condition = c};
  struct tape_layer layer = {.region = block_forward,
                             .arguments = &arguments,
                             .bytes = sizeof arguments,
                             .others = &c,
                             .other_count = 1,
                             .recompute = net->config.recompute};
  for (int64_t i = 0; i < net->config.depth; i++) {
    arguments.block = &net->blocks[i];
    layer.weights = arguments.block->layer;
    h = tape_layer(tape, &layer, h);
  }
  struct value *m = modulation(tape, c, net->final_modulation, net->final_modulation_bias, 2,
                               net->config.bounded);
  return modulated_norm(tape, h, m, 0, positions);
}
