/* Letters: L positions of text, N latents of a text, D width. */
#include "stages/model/networks/aurora_autoencoder.h"

#include <math.h>

#include "stages/model/layers/attention.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/rmsnorm.h"
#include "stages/model/layers/rope.h"
#include "stages/model/networks/sequence.h"

static const double epsilon = 1e-6, rotary_base = 10000;

static struct param *matrix(struct params *params, int64_t rows, int64_t cols, const char *stack,
                            int64_t layer, const char *name) {
  return params_add_matrix(params, rows, cols, PARAM_XAVIER_UNIFORM, 1, "%s.layers.%lld.%s.weight",
                           stack, (long long)layer, name);
}

static struct param *norm(struct params *params, int64_t width, const char *stack, int64_t layer,
                          const char *name) {
  return params_add_vector(params, width, PARAM_ONE, 0, "%s.layers.%lld.%s.weight", stack,
                           (long long)layer, name);
}

static void declare_block(struct aurora_block *block, struct params *params,
                          const struct aurora_config *config, const char *stack, int64_t layer) {
  const int64_t width = config->width;
  const int64_t inner = config->feedforward ? config->feedforward : 4 * width;
  block->layer = params_begin_layer(params);
  block->norm_query = norm(params, width, stack, layer, "norm_query");
  block->norm_memory = norm(params, width, stack, layer, "norm_memory");
  block->query = matrix(params, width, width, stack, layer, "query");
  block->key_value = matrix(params, 2 * width, width, stack, layer, "key_value");
  block->memory_key_value = matrix(params, 2 * width, width, stack, layer, "memory_key_value");
  block->out = matrix(params, width, width, stack, layer, "out");
  block->norm_feedforward = norm(params, width, stack, layer, "norm_feedforward");
  block->up = matrix(params, inner, width, stack, layer, "up");
  block->down = matrix(params, width, inner, stack, layer, "down");
  params_end_layer(params);
}

static void declare_stack(struct aurora_stack *stack, struct params *params,
                          const struct aurora_config *config, const char *name) {
  stack->blocks = arena_take(params->arena, (size_t)config->depth * sizeof *stack->blocks);
  stack->start = params_add_tokens(params, 1, config->width, PARAM_NORMAL, 0.02, "%s.start", name);
  for (int64_t i = 0; i < config->depth; i++)
    declare_block(&stack->blocks[i], params, config, name, i);
  stack->final_norm =
      params_add_vector(params, config->width, PARAM_ONE, 0, "%s.final_norm.weight", name);
}

void aurora_autoencoder_declare(struct aurora_autoencoder *net, struct params *params,
                                const struct aurora_config *config) {
  *net = (struct aurora_autoencoder){.config = *config};
  net->table = params_add_table(params, config->vocabulary, config->width, PARAM_NORMAL, 0.02,
                                "embed.weight");
  declare_stack(&net->encoder, params, config, "encoder");
  declare_stack(&net->decoder, params, config, "decoder");
}

int64_t aurora_autoencoder_latents(double ratio, int64_t tokens) {
  const int64_t latents = llround(ratio * (double)tokens);
  return latents < 1 ? 1 : latents;
}

/* One side of an attention: sequences of `length` rows whose last one has the place `last`. */
struct side {
  int64_t length;
  const int32_t *places;
};

/* Row i (from 1) of `length` stands at place ceil(i * span / length) - 1 of `span`. */
static struct side side_of(struct tape *tape, int64_t batch, int64_t length, int64_t span) {
  int32_t *places = tape_save(tape, (size_t)(batch * length) * sizeof *places);
  for (int64_t row = 0; places && row < batch * length; row++)
    places[row] = (int32_t)(((row % length + 1) * span + length - 1) / length - 1);
  return (struct side){length, places};
}

struct stack_shape {
  int64_t batch, heads;
  struct side state, memory;
  const struct attention_range *ranges;
  struct value *tokens; /* the memory's rows */
};

struct block_arguments {
  const struct aurora_block *block;
  struct stack_shape shape;
};

static struct value *rotate(struct tape *tape, struct value *x, int64_t heads,
                            const struct side *side) {
  const struct rope rope = {.heads = heads, .theta = rotary_base, .positions = side->places};
  return rope_forward(tape, x, &rope);
}

static struct value *attend(struct tape *tape, const struct aurora_block *block,
                            const struct stack_shape *shape, struct value *state,
                            struct value *memory) {
  const int64_t width = state->cols, heads = shape->heads, batch = shape->batch;
  struct value *q = linear_forward(tape, state, block->query, NULL);
  struct value *own = linear_forward(tape, state, block->key_value, NULL);
  struct value *other = linear_forward(tape, memory, block->memory_key_value, NULL);
  struct value *own_k = rotate(tape, tape_columns(tape, own, 0, width), heads, &shape->state);
  struct value *other_k = rotate(tape, tape_columns(tape, other, 0, width), heads, &shape->memory);
  struct value *k = combine_rows(tape, own_k, other_k, batch);
  struct value *v = combine_rows(tape, tape_columns(tape, own, width, width),
                                 tape_columns(tape, other, width, width), batch);
  const struct attention attention = {.batch = batch,
                                      .queries = shape->state.length,
                                      .keys = shape->state.length + shape->memory.length,
                                      .heads = heads,
                                      .head_dim = width / heads,
                                      .ranges = shape->ranges,
                                      .shared_ranges = true};
  q = rotate(tape, q, heads, &shape->state);
  return linear_forward(tape, attention_forward(tape, q, k, v, &attention), block->out, NULL);
}

static struct value *block_forward(struct tape *tape, const void *arguments, struct value *h) {
  const struct block_arguments *given = arguments;
  const struct aurora_block *block = given->block;
  struct value *state = rmsnorm_forward(tape, h, block->norm_query, 1, epsilon);
  struct value *memory = rmsnorm_forward(tape, given->shape.tokens, block->norm_memory, 1, epsilon);
  h = combine_add(tape, h, attend(tape, block, &given->shape, state, memory));
  struct value *x = rmsnorm_forward(tape, h, block->norm_feedforward, 1, epsilon);
  x = feedforward_activation(tape, linear_forward(tape, x, block->up, NULL), ACTIVATION_GELU);
  return combine_add(tape, h, linear_forward(tape, x, block->down, NULL));
}

static struct value *stack_forward(struct tape *tape, const struct aurora_autoencoder *net,
                                   const struct aurora_stack *stack,
                                   const struct stack_shape *shape) {
  const int64_t rows = shape->batch * shape->state.length;
  struct value *h = combine_tokens(tape, stack->start, NULL, NULL, rows);
  struct value *others[] = {shape->tokens};
  struct block_arguments arguments = {.shape = *shape};
  struct tape_layer layer = {.region = block_forward,
                             .arguments = &arguments,
                             .bytes = sizeof arguments,
                             .others = others,
                             .other_count = 1,
                             .recompute = net->config.recompute};
  for (int64_t i = 0; i < net->config.depth; i++) {
    arguments.block = &stack->blocks[i];
    layer.weights = arguments.block->layer;
    h = tape_layer(tape, &layer, h);
  }
  return rmsnorm_forward(tape, h, stack->final_norm, 1, epsilon);
}

/* Query i (from 1) sees states 1 .. i and memory 1 .. seen(i). */
static const struct attention_range *visible_keys(struct tape *tape, int64_t queries,
                                                  int64_t latents, int64_t positions,
                                                  bool encoding) {
  struct attention_range *ranges = tape_save(tape, (size_t)queries * sizeof *ranges);
  for (int64_t i = 0; ranges && i < queries; i++) {
    const int64_t seen =
        encoding ? ((i + 1) * positions + latents - 1) / latents : i * latents / positions + 1;
    ranges[i] = (struct attention_range){.first_end = (int32_t)(i + 1),
                                         .second_begin = (int32_t)queries,
                                         .second_end = (int32_t)(queries + seen)};
  }
  return ranges;
}

struct value *aurora_autoencoder_encode(struct tape *tape, const struct aurora_autoencoder *net,
                                        struct value *tokens, int64_t batch, int64_t positions,
                                        int64_t latents) {
  const struct stack_shape shape = {.batch = batch,
                                    .heads = net->config.heads,
                                    .state = side_of(tape, batch, latents, positions),
                                    .memory = side_of(tape, batch, positions, positions),
                                    .ranges = visible_keys(tape, latents, latents, positions, true),
                                    .tokens = tokens};
  return stack_forward(tape, net, &net->encoder, &shape);
}

struct value *aurora_autoencoder_decode(struct tape *tape, const struct aurora_autoencoder *net,
                                        struct value *latents, int64_t batch, int64_t count,
                                        int64_t positions) {
  const struct stack_shape shape = {.batch = batch,
                                    .heads = net->config.heads,
                                    .state = side_of(tape, batch, positions, positions),
                                    .memory = side_of(tape, batch, count, positions),
                                    .ranges =
                                        visible_keys(tape, positions, count, positions, false),
                                    .tokens = latents};
  return stack_forward(tape, net, &net->decoder, &shape);
}
