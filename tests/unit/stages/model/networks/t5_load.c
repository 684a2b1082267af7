/* Reading Hugging Face T5 models: config.json and model.safetensors, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/safetensors_writer.h"
#include "pipeline/base/file.h"
#include "stages/model/networks/t5_encoder.h"
#include "tests/common/golden.h"
#include "tests/common/tap.h"

static const struct t5_config tiny = {.vocabulary = 7,
                                      .width = 6,
                                      .heads = 2,
                                      .head_dim = 4,
                                      .feedforward = 10,
                                      .depth = 2,
                                      .buckets = 8,
                                      .max_distance = 16,
                                      .epsilon = 1e-6,
                                      .gated = true};

struct encoder_set {
  struct arena declarations, weights;
  struct params params;
  struct t5_encoder net;
};

static void open_set(struct encoder_set *set) {
  assert_ok(arena_init(&set->declarations, "declarations", 1 << 20));
  assert_ok(arena_init(&set->weights, "weights", 1 << 20));
  params_init(&set->params, &set->declarations);
  t5_encoder_declare(&set->net, &set->params, &tiny, true);
  params_bind(&set->params, &set->weights, DTYPE_F32, false);
}

static void close_set(struct encoder_set *set) {
  arena_free(&set->weights);
  arena_free(&set->declarations);
}

/* Writes all parameters but `left_out`; `extra` (may be NULL) is one more tensor of 3 numbers. */
static void write_model(const struct params *params, const char *left_out, const char *extra) {
  struct safetensors_tensor tensors[64];
  const struct param *written[64];
  struct safetensors_writer writer;
  int64_t count = 0;
  for (int64_t i = 0; i < params->count; i++) {
    struct param *param = params->items[i];
    if (left_out && strcmp(param->name, left_out) == 0) continue;
    written[count] = param;
    tensors[count] = (struct safetensors_tensor){
        .name = param->name, .dtype = DTYPE_F32, .dimensions = param->dimensions};
    memcpy(tensors[count++].shape, param->shape, sizeof param->shape);
  }
  const int64_t own = count;
  if (extra)
    tensors[count++] = (struct safetensors_tensor){
        .name = (char *)(uintptr_t)extra, .dtype = DTYPE_F32, .dimensions = 1, .shape = {3}};
  assert_ok(safetensors_writer_open(
      &writer, &(struct safetensors_layout){
                   .path = "model.safetensors", .tensors = tensors, .count = count}));
  for (int64_t i = 0; i < own; i++)
    assert_ok(safetensors_writer_append(&writer, written[i]->data,
                                        (uint64_t)param_count(written[i]) * sizeof(float)));
  if (extra) assert_ok(safetensors_writer_append(&writer, (float[3]){0}, 3 * sizeof(float)));
  assert_ok(safetensors_writer_close(&writer, NULL));
}

static void weights_come_back(void **state) {
  (void)state;
  struct encoder_set saved, loaded;
  open_set(&saved);
  open_set(&loaded);
  for (int64_t i = 0; i < saved.params.count; i++) golden_fill_param(saved.params.items[i]);
  write_model(&saved.params, NULL, "decoder.final_layer_norm.weight");
  assert_ok(t5_encoder_load(&loaded.params, DTYPE_F32, "model.safetensors"));
  for (int64_t i = 0; i < saved.params.count; i++)
    assert_memory_equal(loaded.params.items[i]->data, saved.params.items[i]->data,
                        (size_t)param_count(saved.params.items[i]) * sizeof(float));
  close_set(&loaded);
  close_set(&saved);
}

static void refuse(const char *left_out, const char *extra, const char *named) {
  struct encoder_set set;
  open_set(&set);
  for (int64_t i = 0; i < set.params.count; i++) golden_fill_param(set.params.items[i]);
  write_model(&set.params, left_out, extra);
  assert_status(STATUS_MISMATCH, t5_encoder_load(&set.params, DTYPE_F32, "model.safetensors"));
  assert_non_null(strstr(error_message(), named));
  close_set(&set);
}

static void missing_and_unknown_tensors_are_named(void **state) {
  (void)state;
  refuse("encoder.block.1.layer.1.DenseReluDense.wi_1.weight", NULL, "wi_1");
  refuse(NULL, "encoder.block.2.layer.0.layer_norm.weight", "encoder.block.2");
}

static void other_shapes_are_refused(void **state) {
  (void)state;
  struct encoder_set set;
  open_set(&set);
  struct param *norm = params_find(&set.params, "encoder.final_layer_norm.weight");
  norm->shape[0] = 5; /* as if the file were of another width */
  norm->cols = 5;
  write_model(&set.params, NULL, NULL);
  norm->shape[0] = norm->cols = 6;
  assert_status(STATUS_MISMATCH, t5_encoder_load(&set.params, DTYPE_F32, "model.safetensors"));
  assert_non_null(strstr(error_message(), "encoder.final_layer_norm.weight"));
  close_set(&set);
}

static enum status read_text(struct t5_config *config, const char *text) {
  assert_ok(file_write("config.json", text, strlen(text)));
  return t5_config_read(config, "config.json");
}

#define SIZES                                                                                      \
  "\"vocab_size\": 32128, \"d_model\": 512, \"d_kv\": 64, \"d_ff\": 1024, \"num_layers\": 8, "     \
  "\"num_heads\": 6"

static void configs_are_read(void **state) {
  (void)state;
  struct t5_config config;
  assert_ok(read_text(&config, "{\"model_type\": \"t5\", " SIZES "}"));
  assert_false(config.gated);
  assert_int_equal(config.heads, 6);
  assert_int_equal(config.max_distance, 128);
  assert_ok(read_text(&config, "{\"model_type\": \"t5\", \"feed_forward_proj\": \"gated-gelu\", "
                               "\"relative_attention_max_distance\": 64, " SIZES "}"));
  assert_true(config.gated);
  assert_int_equal(config.max_distance, 64);
}

static void wrong_configs_name_their_key(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"{\"model_type\": \"bert\", " SIZES "}", "bert"},
      {"{\"model_type\": \"t5\"}", "vocab_size"},
      {"{\"model_type\": \"t5\", \"feed_forward_proj\": \"gated-silu\", " SIZES "}", "gated-silu"},
      {"{\"model_type\": \"t5\",\n \"d_model\": }", "line 2"}};
  struct t5_config config;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_status(STATUS_MISMATCH, read_text(&config, cases[i][0]));
    assert_non_null(strstr(error_message(), cases[i][1]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_come_back), cmocka_unit_test(missing_and_unknown_tensors_are_named),
      cmocka_unit_test(other_shapes_are_refused), cmocka_unit_test(configs_are_read),
      cmocka_unit_test(wrong_configs_name_their_key)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
