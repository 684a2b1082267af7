/* Weights of Hugging Face T5 models. */
#include <string.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/base/bf16.h"
#include "stages/model/networks/t5_encoder.h"

/* What T5EncoderModel and older exports call the table. */
static const char table_name[] = "shared.weight", table_alias[] = "encoder.embed_tokens.weight";

static bool is_decoder(const char *name) {
  return strncmp(name, "decoder.", 8) == 0 || strncmp(name, "lm_head.", 8) == 0;
}

static enum status check_known(const struct safetensors *file, const struct params *params) {
  for (int64_t i = 0; i < file->count; i++) {
    const char *name = file->tensors[i].name;
    CHECK(is_decoder(name) || strcmp(name, table_alias) == 0 || params_find(params, name),
          STATUS_MISMATCH,
          "'%s': tensor '%s' is not of this T5 encoder; does config.json belong to the file?",
          file->source.path, name);
  }
  return STATUS_OK;
}

static enum status find(const struct safetensors *file, const struct safetensors_tensor **tensor,
                        const struct param *param) {
  const bool alias = strcmp(param->name, table_name) == 0 && !safetensors_find(file, table_name);
  char name[PARAM_NAME_BYTES];
  strcpy(name, alias && safetensors_find(file, table_alias) ? table_alias : param->name);
  struct safetensors_tensor expected = {.name = name, .dimensions = param->dimensions};
  memcpy(expected.shape, param->shape, sizeof param->shape);
  const struct safetensors_tensor *found = safetensors_find(file, name);
  const bool is_real = found && (found->dtype == DTYPE_F16 || found->dtype == DTYPE_BF16);
  expected.dtype = is_real ? found->dtype : DTYPE_F32;
  TRY(safetensors_require(file, tensor, &expected));
  return STATUS_OK;
}

/* Widens or narrows in place of the parameter's own array. */
static void store(const struct param *param, enum dtype element, const float *values) {
  const int64_t count = param_count(param);
  const enum dtype dtype = param_dtype(param, element);
  double *doubles = param->data;
  bf16 *halves = param->data;
  if (dtype == DTYPE_F32) memcpy(param->data, values, (size_t)count * sizeof *values);
  for (int64_t i = 0; dtype == DTYPE_F64 && i < count; i++) doubles[i] = (double)values[i];
  for (int64_t i = 0; dtype == DTYPE_BF16 && i < count; i++) halves[i] = bf16_from_float(values[i]);
}

static enum status load_all(const struct safetensors *file, struct source_cache *cache,
                            const struct params *params, enum dtype element, float *values) {
  TRY(check_known(file, params));
  for (int64_t i = 0; i < params->count; i++) {
    const struct safetensors_tensor *tensor;
    TRY(find(file, &tensor, params->items[i]));
    TRY(safetensors_read_floats(file, cache, tensor, values));
    store(params->items[i], element, values);
  }
  return STATUS_OK;
}

static size_t largest_bytes(const struct params *params) {
  int64_t largest = 0;
  for (int64_t i = 0; i < params->count; i++)
    if (param_count(params->items[i]) > largest) largest = param_count(params->items[i]);
  return (size_t)largest * sizeof(float);
}

enum status t5_encoder_load(const struct params *params, enum dtype element, const char *path) {
  struct safetensors file;
  struct arena scratch = {0};
  struct source_cache cache = {0};
  enum status status;
  TRY(safetensors_open(&file, path, NULL));
  TRY_OR(status, done, arena_init(&scratch, "weights being read", largest_bytes(params)));
  float *values = arena_take(&scratch, largest_bytes(params));
  TRY_OR(status, done, load_all(&file, &cache, params, element, values));
done:
  arena_free(&scratch);
  source_cache_free(&cache);
  safetensors_close(&file);
  return status;
}
