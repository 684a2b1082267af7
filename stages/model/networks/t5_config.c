/* config.json of Hugging Face T5 models. Keys that this network does not read are left alone. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/model/networks/t5_config.h"

static enum status read_count(int64_t *value, const json_t *root, const char *key, int64_t fallback,
                              const char *path) {
  const json_t *item = json_object_get(root, key);
  if (!item && fallback) {
    *value = fallback;
    return STATUS_OK;
  }
  CHECK(item, STATUS_MISMATCH,
        "'%s': the key '%s' is missing; is it the config.json of a T5 model?", path, key);
  CHECK(json_is_integer(item) && json_integer_value(item) > 0, STATUS_MISMATCH,
        "'%s': '%s' must be a positive integer", path, key);
  *value = json_integer_value(item);
  return STATUS_OK;
}

static enum status read_counts(struct t5_config *config, const json_t *root, const char *path) {
  TRY(read_count(&config->vocabulary, root, "vocab_size", 0, path));
  TRY(read_count(&config->width, root, "d_model", 0, path));
  TRY(read_count(&config->head_dim, root, "d_kv", 0, path));
  TRY(read_count(&config->feedforward, root, "d_ff", 0, path));
  TRY(read_count(&config->depth, root, "num_layers", 0, path));
  TRY(read_count(&config->heads, root, "num_heads", 0, path));
  TRY(read_count(&config->buckets, root, "relative_attention_num_buckets", 32, path));
  return read_count(&config->max_distance, root, "relative_attention_max_distance", 128, path);
}

static enum status read_feedforward(struct t5_config *config, const json_t *root,
                                    const char *path) {
  const json_t *item = json_object_get(root, "feed_forward_proj");
  const char *word = item ? json_string_value(item) : "relu";
  CHECK(word && (strcmp(word, "relu") == 0 || strcmp(word, "gated-gelu") == 0), STATUS_MISMATCH,
        "'%s': feed_forward_proj is '%s'; this program has relu and gated-gelu", path,
        word ? word : "not a text");
  config->gated = strcmp(word, "gated-gelu") == 0;
  return STATUS_OK;
}

static enum status read_object(struct t5_config *config, const json_t *root, const char *path) {
  const char *type = json_string_value(json_object_get(root, "model_type"));
  CHECK(type && (strcmp(type, "t5") == 0 || strcmp(type, "mt5") == 0), STATUS_MISMATCH,
        "'%s': model_type is '%s', expected t5 or mt5", path, type ? type : "missing");
  const json_t *epsilon = json_object_get(root, "layer_norm_epsilon");
  config->epsilon = epsilon ? json_number_value(epsilon) : 1e-6;
  CHECK(config->epsilon > 0, STATUS_MISMATCH, "'%s': layer_norm_epsilon must be positive", path);
  TRY(read_counts(config, root, path));
  return read_feedforward(config, root, path);
}

enum status t5_config_read(struct t5_config *config, const char *path) {
  *config = (struct t5_config){0};
  json_error_t error;
  json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  CHECK(root, STATUS_MISMATCH, "'%s' line %d: %s", path, error.line, error.text);
  const enum status status = read_object(config, root, path);
  json_decref(root);
  if (status != STATUS_OK) return error_pass(status, __FILE__, __LINE__, __func__);
  return STATUS_OK;
}

static json_t *make_object(const struct t5_config *config, const struct t5_ids *ids) {
  const int64_t decoder = config->decoder_depth ? config->decoder_depth : config->depth;
  return json_pack(
      "{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:s, s:b, s:b, s:i, s:i, "
      "s:i}",
      "model_type", "t5", "architectures", "T5ForConditionalGeneration", "vocab_size",
      (json_int_t)config->vocabulary, "d_model", (json_int_t)config->width, "d_kv",
      (json_int_t)config->head_dim, "d_ff", (json_int_t)config->feedforward, "num_layers",
      (json_int_t)config->depth, "num_decoder_layers", (json_int_t)decoder, "num_heads",
      (json_int_t)config->heads, "relative_attention_num_buckets", (json_int_t)config->buckets,
      "relative_attention_max_distance", (json_int_t)config->max_distance, "layer_norm_epsilon",
      config->epsilon, "feed_forward_proj", config->gated ? "gated-gelu" : "relu",
      "is_encoder_decoder", 1, "tie_word_embeddings", config->shared_head, "pad_token_id", ids->pad,
      "eos_token_id", ids->eos, "decoder_start_token_id", ids->pad);
}

enum status t5_config_write(const struct t5_config *config, const struct t5_ids *ids,
                            const char *path) {
  json_t *root = make_object(config, ids);
  char *dump = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
  json_decref(root);
  CHECK(dump, STATUS_ENVIRONMENT, "out of memory: writing '%s'", path);
  const enum status status = file_write(path, dump, strlen(dump));
  free(dump);
  TRY(status);
  return STATUS_OK;
}
