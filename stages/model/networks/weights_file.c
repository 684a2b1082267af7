#include "stages/model/networks/weights_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/artefact/safetensors_writer.h"
#include "pipeline/base/bf16.h"

/* Kernels are stored [in, out]. */
static bool is_turned(const struct param *param) {
  const char *ending = strrchr(param->name, '_');
  return ending && strcmp(ending, "_kernel") == 0;
}

static struct safetensors_tensor describe(const struct param *param) {
  struct safetensors_tensor tensor = {
      .name = (char *)(uintptr_t)param->name, .dtype = DTYPE_F32, .dimensions = param->dimensions};
  for (int i = 0; i < param->dimensions; i++)
    tensor.shape[i] = param->shape[is_turned(param) ? param->dimensions - 1 - i : i];
  return tensor;
}

/* Where element (row, col) of the parameter is in the file's tensor. */
static int64_t place(const struct param *param, int64_t row, int64_t col) {
  return is_turned(param) ? col * param->rows + row : row * param->cols + col;
}

static void put(const struct param *param, enum dtype dtype, int64_t i, float value) {
  if (dtype == DTYPE_F32)
    ((float *)param->data)[i] = value;
  else if (dtype == DTYPE_F64)
    ((double *)param->data)[i] = (double)value;
  else
    ((bf16 *)param->data)[i] = bf16_from_float(value);
}

static float get(const struct param *param, enum dtype dtype, int64_t i) {
  if (dtype == DTYPE_F32) return ((const float *)param->data)[i];
  if (dtype == DTYPE_F64) return (float)((const double *)param->data)[i];
  return bf16_to_float(((const bf16 *)param->data)[i]);
}

static float *take_largest(const struct params *params) {
  int64_t largest = 1;
  for (int64_t i = 0; i < params->count; i++)
    if (param_count(params->items[i]) > largest) largest = param_count(params->items[i]);
  return malloc((size_t)largest * sizeof(float));
}

static enum status check_known(const struct safetensors *file, const struct params *params) {
  for (int64_t i = 0; i < file->count; i++)
    CHECK(
        params_find(params, file->tensors[i].name), STATUS_MISMATCH,
        "'%s': tensor '%s' is not of the network that these options describe; is depth right, and "
        "is the file converted as pipeline/docs/formats.md says?",
        file->source.path, file->tensors[i].name);
  return STATUS_OK;
}

static enum status read_one(const struct safetensors *file, struct source_cache *cache,
                            const struct param *param, enum dtype element, float *values) {
  const struct safetensors_tensor *tensor, *found = safetensors_find(file, param->name);
  struct safetensors_tensor expected = describe(param);
  if (found && found->dtype != DTYPE_F32 && dtype_bytes(found->dtype) > 1)
    expected.dtype = found->dtype;
  TRY(safetensors_require(file, &tensor, &expected));
  TRY(safetensors_read_floats(file, cache, tensor, values));
  for (int64_t row = 0; row < param->row_count; row++)
    for (int64_t col = 0; col < param->cols; col++)
      put(param, param_dtype(param, element), row * param->cols + col,
          values[place(param, param->row_begin + row, col)]);
  return STATUS_OK;
}

static enum status read_all(const struct safetensors *file, struct source_cache *cache,
                            const struct params *params, enum dtype element) {
  float *values = take_largest(params);
  CHECK(values, STATUS_ENVIRONMENT, "out of memory: reading '%s'", file->source.path);
  enum status status = check_known(file, params);
  for (int64_t i = 0; i < params->count && status == STATUS_OK; i++)
    status = read_one(file, cache, params->items[i], element, values);
  free(values);
  return status;
}

enum status weights_file_read(const struct params *params, enum dtype element, const char *path) {
  struct safetensors file;
  struct source_cache cache = {0};
  TRY(safetensors_open(&file, path, NULL));
  const enum status status = read_all(&file, &cache, params, element);
  source_cache_free(&cache);
  safetensors_close(&file);
  TRY(status);
  return STATUS_OK;
}

static enum status write_one(struct safetensors_writer *writer, const struct param *param,
                             enum dtype element, float *values) {
  assert(param->row_count == param->rows);
  for (int64_t row = 0; row < param->rows; row++)
    for (int64_t col = 0; col < param->cols; col++)
      values[place(param, row, col)] =
          get(param, param_dtype(param, element), row * param->cols + col);
  return safetensors_writer_append(writer, values, (uint64_t)param_count(param) * sizeof *values);
}

static enum status write_all(struct safetensors_tensor *tensors, float *values,
                             const struct params *params, enum dtype element, const char *path) {
  struct safetensors_writer writer;
  CHECK(tensors && values, STATUS_ENVIRONMENT, "out of memory: writing '%s'", path);
  for (int64_t i = 0; i < params->count; i++) tensors[i] = describe(params->items[i]);
  TRY(safetensors_writer_open(
      &writer,
      &(struct safetensors_layout){.path = path, .tensors = tensors, .count = params->count}));
  enum status status = STATUS_OK;
  for (int64_t i = 0; i < params->count && status == STATUS_OK; i++)
    status = write_one(&writer, params->items[i], element, values);
  if (status == STATUS_OK) status = safetensors_writer_close(&writer, NULL);
  safetensors_writer_abandon(&writer);
  return status;
}

enum status weights_file_write(const struct params *params, enum dtype element, const char *path) {
  struct safetensors_tensor *tensors = calloc((size_t)params->count + 1, sizeof *tensors);
  float *values = take_largest(params);
  const enum status status = write_all(tensors, values, params, element, path);
  free(tensors);
  free(values);
  TRY(status);
  return STATUS_OK;
}
