#include "stages/flow/model_weights.h"

#include <inttypes.h>
#include <stdio.h>

#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/artefact/convert.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/bf16.h"
#include "stages/flow/model.h"

enum { NAME_BYTES = PARAM_NAME_BYTES + 16, CHUNK_BYTES = 4 << 20 };

static enum status find_newest(int64_t *newest, const char *path) {
  struct checkpoint_steps steps = {0};
  TRY(checkpoint_folder_list(&steps, path));
  *newest = steps.count > 0 ? steps.items[0].step : -1;
  checkpoint_folder_free(&steps);
  CHECK(*newest >= 0, STATUS_MISMATCH, "%s holds no weights; run the node that trains them again",
        path);
  return STATUS_OK;
}

enum status model_weights_open(struct model_weights *weights, const char *folder, int64_t step) {
  char path[PATH_MAX], step_folder[PATH_MAX];
  const int length = snprintf(path, sizeof path, "%s/%s", folder, MODEL_FOLDER);
  CHECK(length < (int)sizeof path, STATUS_MISMATCH, "%s: the path is too long", folder);
  CHECK(step == 0 || checkpoint_folder_has(path, step), STATUS_MISMATCH,
        "%s does not hold the weights of step %" PRId64 "; run the node that trains them again",
        path, step);
  if (step == 0) TRY(find_newest(&step, path));
  TRY(checkpoint_folder_step(step_folder, path, step));
  return checkpoint_reader_open(&weights->reader, step_folder);
}

void model_weights_close(struct model_weights *weights) {
  checkpoint_reader_close(&weights->reader);
}

struct checkpoint_rows model_weights_rows(const struct param *param) {
  const int64_t each = param_count(param) / param->shape[0];
  return (struct checkpoint_rows){.first = param->row_begin * param->cols / each,
                                  .count = param->row_count * param->cols / each};
}

static const struct safetensors_tensor *find(const struct checkpoint_reader *reader,
                                             const struct param *param, bool raw) {
  char name[NAME_BYTES];
  snprintf(name, sizeof name, MODEL_AVERAGE_PREFIX "%s", param->name);
  const struct safetensors_tensor *average = raw ? NULL : checkpoint_reader_find(reader, name);
  if (average) return average;
  snprintf(name, sizeof name, MODEL_PREFIX "%s", param->name);
  return checkpoint_reader_find(reader, name);
}

static enum status check_shape(const struct model_weights *weights, const struct param *param,
                               const struct safetensors_tensor *tensor) {
  CHECK(tensor, STATUS_MISMATCH,
        "%s: there is no parameter '%s'; the weights are of another network",
        weights->reader.folder, param->name);
  bool same = tensor->dimensions == param->dimensions;
  for (int i = 0; same && i < param->dimensions; i++) same = tensor->shape[i] == param->shape[i];
  CHECK(same, STATUS_MISMATCH,
        "%s: parameter '%s' has %d dimensions, the first of size %" PRId64
        "; the network wants %d and %" PRId64,
        weights->reader.folder, param->name, tensor->dimensions, tensor->shape[0],
        param->dimensions, param->shape[0]);
  return STATUS_OK;
}

static void store(void *data, enum dtype dtype, int64_t at, const float *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (dtype == DTYPE_F64) ((double *)data)[at + i] = (double)values[i];
    if (dtype == DTYPE_F32) ((float *)data)[at + i] = values[i];
    if (dtype == DTYPE_BF16) ((bf16 *)data)[at + i] = bf16_from_float(values[i]);
  }
}

/* Scratch and checked blocks of a reading. */
struct reading {
  struct source_cache cache;
  void *bytes;   /* CHUNK_BYTES */
  float *values; /* CHUNK_BYTES / 2 elements: the narrowest type has two bytes */
};

static enum status read_rows(const struct model_weights *weights, struct reading *reading,
                             const struct safetensors_tensor *tensor, const struct param *param,
                             enum dtype element) {
  const struct checkpoint_rows rows = model_weights_rows(param);
  const int64_t each = param_count(param) / param->shape[0];
  const int64_t most = CHUNK_BYTES / (int64_t)safetensors_row_bytes(tensor);
  CHECK(most > 0, STATUS_MISMATCH, "parameter '%s': rows of %" PRIu64 " bytes are not supported",
        param->name, safetensors_row_bytes(tensor));
  for (int64_t done = 0; done < rows.count; done += most) {
    const int64_t count = rows.count - done < most ? rows.count - done : most;
    const struct checkpoint_rows part = {rows.first + done, count};
    TRY(checkpoint_reader_read(&weights->reader, &reading->cache, tensor, part, reading->bytes));
    TRY(convert_to_float(reading->values, reading->bytes, tensor->dtype, count * each));
    store(param->data, param_dtype(param, element), done * each, reading->values, count * each);
  }
  return STATUS_OK;
}

static enum status read_all(const struct model_weights *weights, struct reading *reading,
                            const struct params *params, enum dtype element, bool raw) {
  for (int64_t i = 0; i < params->count; i++) {
    const struct param *param = params->items[i];
    if (param->derived) continue;
    const struct safetensors_tensor *tensor = find(&weights->reader, param, raw);
    TRY(check_shape(weights, param, tensor));
    if (param->place != PARAM_ELSEWHERE) TRY(read_rows(weights, reading, tensor, param, element));
  }
  return STATUS_OK;
}

enum status model_weights_read(const struct model_weights *weights, const struct params *params,
                               enum dtype element, bool raw) {
  struct arena scratch;
  TRY(arena_init(&scratch, "reading weights", 3 * CHUNK_BYTES));
  struct reading reading = {.bytes = arena_take(&scratch, CHUNK_BYTES),
                            .values = arena_take(&scratch, 2 * CHUNK_BYTES)};
  const enum status status = read_all(weights, &reading, params, element, raw);
  source_cache_free(&reading.cache);
  arena_free(&scratch);
  return status;
}
