#include "stages/flow/encoder.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "stages/flow/model.h"
#include "stages/flow/model_weights.h"
#include "stages/flow/t5.h"

enum { DECLARATION_BYTES = 4 << 20, PATH_BYTES = 4096 };

static const struct options *options_of(const struct encoder_request *request) {
  return &request->node->options;
}

static enum status path_of(char path[PATH_BYTES], const struct options *options, const char *name) {
  CHECK(snprintf(path, PATH_BYTES, "%s/%s", options->encoder_path, name) < PATH_BYTES,
        STATUS_MISMATCH, "encoder_path is longer than %d bytes", PATH_BYTES);
  return STATUS_OK;
}

static struct t5_config random_config(const struct options *options, int64_t vocabulary) {
  const int64_t width = options->encoder_width, heads = options->encoder_heads;
  return (struct t5_config){.vocabulary = vocabulary,
                            .width = width,
                            .heads = heads,
                            .head_dim = width / heads,
                            .feedforward = 4 * width,
                            .depth = options->encoder_depth,
                            .buckets = 32,
                            .max_distance = 128,
                            .epsilon = 1e-6};
}

/* The nodes that an encoder is found by. */
static enum status find_trained(const struct recipe_node **node, char folder[STAGE_PATH_BYTES],
                                const struct encoder_request *request) {
  TRY(recipe_upstream(node, request->stage->recipe, request->node, IN_PRETRAIN));
  CHECK(*node, STATUS_MISMATCH, "node '%s': no pretrain node is upstream", request->node->name);
  return stage_folder(folder, request->stage, *node);
}

/* The shape that the node was trained in, with as many ids as its weights have. */
static enum status trained_config(struct t5_config *config, const struct encoder_request *request) {
  char folder[STAGE_PATH_BYTES];
  const struct recipe_node *node;
  struct model_weights weights;
  struct model_facts facts = {0};
  const char *tokenizer;
  TRY(find_trained(&node, folder, request));
  TRY(model_weights_open(&weights, folder, 0));
  const struct scalars *state = &weights.reader.manifest.state;
  enum status status = model_load_facts(&facts, state);
  if (status == STATUS_OK) status = scalars_get_text(state, "tokenizer_hash", &tokenizer);
  const bool same = status == STATUS_OK && strcmp(tokenizer, request->tokenizer) == 0;
  model_weights_close(&weights);
  TRY(status);
  CHECK(same, STATUS_MISMATCH,
        "node '%s': '%s' was trained with another tokenizer than that of the tokens to embed; "
        "train it on tokens of the same tokenizer",
        request->node->name, node->name);
  *config = t5_config_of(&node->options, facts.vocabulary);
  return STATUS_OK;
}

static enum status read_config(struct t5_config *config, const struct encoder_request *request) {
  char path[PATH_BYTES];
  const struct options *options = options_of(request);
  if (options->encoder == ENCODER_TRAINED) return trained_config(config, request);
  if (options->encoder == ENCODER_RANDOM) {
    *config = random_config(options, request->vocabulary);
    return STATUS_OK;
  }
  TRY(path_of(path, options, "config.json"));
  TRY(t5_config_read(config, path));
  CHECK(config->vocabulary >= request->vocabulary, STATUS_MISMATCH,
        "'%s': the encoder knows %lld tokens, the tokenizer has %lld; they do not belong together",
        path, (long long)config->vocabulary, (long long)request->vocabulary);
  return STATUS_OK;
}

/* The average of the weights where one was kept. */
static enum status read_trained(struct encoder *encoder, const struct encoder_request *request) {
  char folder[STAGE_PATH_BYTES];
  const struct recipe_node *node;
  struct model_weights weights;
  TRY(find_trained(&node, folder, request));
  TRY(model_weights_open(&weights, folder, 0));
  const enum status status =
      model_weights_read(&weights, &encoder->params, encoder->kernels.element, false);
  model_weights_close(&weights);
  TRY(status);
  return STATUS_OK;
}

static enum status bind_weights(struct encoder *encoder, const struct encoder_request *request) {
  char path[PATH_BYTES];
  struct arena measuring;
  const struct options *options = options_of(request);
  const enum dtype element = encoder->kernels.element;
  arena_measure(&measuring, "encoder weights");
  params_bind(&encoder->params, &measuring, element, false);
  TRY(arena_init(&encoder->weights, "encoder weights", measuring.peak));
  params_bind(&encoder->params, &encoder->weights, element, false);
  if (options->encoder == ENCODER_TRAINED) return read_trained(encoder, request);
  if (options->encoder == ENCODER_RANDOM) {
    params_initialise(&encoder->params, element, (uint64_t)options->seed);
    return STATUS_OK;
  }
  TRY(path_of(path, options, "model.safetensors"));
  return t5_encoder_load(&encoder->params, element, path);
}

/* Of the numbers the kernels see: weights read as bf16 are another encoder than the same in F32. */
static enum status hash_weights(struct encoder *encoder) {
  struct hash_stream *stream = hash_open();
  CHECK(stream, STATUS_ENVIRONMENT, "out of memory: a hash");
  for (int64_t i = 0; i < encoder->params.count; i++) {
    const struct param *param = encoder->params.items[i];
    const enum dtype dtype = param_dtype(param, encoder->kernels.element);
    hash_add(stream, param->name, sizeof param->name);
    hash_add(stream, param->data, (size_t)param_count(param) * dtype_bytes(dtype));
  }
  hash_to_hex(encoder->hash, hash_result(stream));
  hash_close(stream);
  return STATUS_OK;
}

static enum status open_all(struct encoder *encoder, const struct encoder_request *request) {
  struct t5_config config;
  const struct options *options = options_of(request);
  TRY(read_config(&config, request));
  TRY(model_open_kernels(&encoder->kernels, options->kernels, options->precision));
  TRY(arena_init(&encoder->declarations, "encoder declarations", DECLARATION_BYTES));
  params_init(&encoder->params, &encoder->declarations);
  t5_encoder_declare(&encoder->net, &encoder->params, &config, true);
  TRY(bind_weights(encoder, request));
  TRY(hash_weights(encoder));
  return workspace_init(&encoder->workspace, &encoder->kernels, "encoder activations");
}

enum status encoder_open(struct encoder *encoder, const struct encoder_request *request) {
  *encoder = (struct encoder){0};
  const enum status status = open_all(encoder, request);
  if (status == STATUS_OK) return STATUS_OK;
  encoder_close(encoder);
  return error_pass(status, __FILE__, __LINE__, __func__);
}

void encoder_close(struct encoder *encoder) {
  workspace_free(&encoder->workspace);
  arena_free(&encoder->weights);
  arena_free(&encoder->declarations);
  *encoder = (struct encoder){0};
}

struct run {
  const struct encoder *encoder;
  const struct t5_input *rows;
  float *out;
};

static enum status use_tape(void *context, struct tape *tape) {
  const struct run *run = context;
  tape->recording = tape->training = false;
  tape_output(tape, run->out, t5_encoder_forward(tape, &run->encoder->net, run->rows));
  return tape->status;
}

enum status encoder_run(struct encoder *encoder, float *out, const struct t5_input *rows) {
  struct run run = {.encoder = encoder, .rows = rows, .out = out};
  return workspace_run(&encoder->workspace, use_tape, &run);
}

enum status encoder_measure(struct encoder *encoder, size_t *bytes, int64_t batch,
                            int64_t positions) {
  const int32_t none = 0; /* lengths and sources are not read while measuring */
  const struct t5_input rows = {
      .batch = batch, .positions = positions, .lengths = &none, .sources = &none};
  struct run run = {.encoder = encoder, .rows = &rows};
  return workspace_measure(&encoder->workspace, bytes, use_tape, &run);
}
