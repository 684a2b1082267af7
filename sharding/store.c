#include "sharding/store.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/byte_planes.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/text.h"

static bool ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* "NAME-..." or, for no name, any shard. */
static bool is_shard(const char *path, const char *name) {
  const size_t length = strlen(name);
  if (!ends_with(path, ".safetensors") && !ends_with(path, ".safetensors.zst")) return false;
  return !length || (strncmp(path, name, length) == 0 && path[length] == '-');
}

static enum status read_rows(struct store_shard *shard) {
  const char *path = shard->file.source.path;
  const char *rows = safetensors_value(&shard->file, "rows");
  CHECK(rows, STATUS_MISMATCH, "'%s' is no shard: its metadata has no 'rows'", path);
  CHECK(text_parse_integer(&shard->rows, rows) && shard->rows >= 0, STATUS_DAMAGED,
        "'%s': 'rows' is '%s'", path, rows);
  return STATUS_OK;
}

static enum status add_shard(struct store *store, const struct manifest_output *output) {
  char path[PATH_MAX];
  struct store_shard *shard = &store->shards[store->shard_count];
  TRY(manifest_join(path, store->folder, output->path));
  TRY(safetensors_open(&shard->file, path, &output->blocks));
  store->shard_count++; /* from here on store_close closes it */
  TRY(read_rows(shard));
  shard->first_row = store->rows;
  store->rows += shard->rows;
  return STATUS_OK;
}

static enum status add_shards(struct store *store, const struct manifest *manifest,
                              const char *name, struct text *content) {
  for (int64_t i = 0; i < manifest->output_count; i++) {
    const struct manifest_output *output = &manifest->outputs[i];
    if (!is_shard(output->path, name)) continue;
    TRY(add_shard(store, output));
    TRY(text_format(content, "%s %016" PRIx64 "\n", output->path, blocks_digest(&output->blocks)));
  }
  CHECK(store->shard_count, STATUS_MISMATCH, "folder '%s' has no shards called '%s'", store->folder,
        name);
  hash_to_hex(store->hash, hash_bytes128(content->bytes, content->length));
  return STATUS_OK;
}

static enum status open_all(struct store *store, const struct manifest *manifest,
                            const char *name) {
  struct text content = {0};
  store->shards = calloc((size_t)manifest->output_count + 1, sizeof *store->shards);
  CHECK(store->shards && store->folder, STATUS_ENVIRONMENT, "out of memory");
  const enum status status = add_shards(store, manifest, name, &content);
  text_free(&content);
  return status;
}

enum status store_open(struct store *store, const char *folder, const char *name) {
  struct manifest manifest = {0};
  *store = (struct store){0};
  TRY(manifest_read(&manifest, folder));
  store->folder = strdup(folder);
  const enum status status = open_all(store, &manifest, name);
  manifest_free(&manifest);
  if (status != STATUS_OK) store_close(store);
  return status;
}

void store_close(struct store *store) {
  for (int64_t i = 0; i < store->shard_count; i++) safetensors_close(&store->shards[i].file);
  free(store->shards);
  free(store->folder);
  *store = (struct store){0};
}

const char *store_value(const struct store *store, const char *key) {
  const char *value = NULL;
  for (int64_t i = 0; i < store->shard_count; i++) {
    const char *own = safetensors_value(&store->shards[i].file, key);
    if (!own || (value && strcmp(own, value) != 0)) return NULL;
    value = own;
  }
  return value;
}

static enum status unknown_column(const struct store_shard *shard, const char *name) {
  struct text names = {0};
  enum status status = text_add(&names, "");
  for (int64_t i = 0; i < shard->file.count && status == STATUS_OK; i++)
    if (!ends_with(shard->file.tensors[i].name, ".offsets"))
      status = text_format(&names, " '%s'", shard->file.tensors[i].name);
  if (status == STATUS_OK)
    status = error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__,
                         "'%s' has no column '%s'; it has:%s", shard->file.source.path, name,
                         names.bytes);
  text_free(&names);
  return status;
}

static enum status longest_of(const struct store_shard *shard, const char *name, int64_t *longest) {
  char key[96];
  snprintf(key, sizeof key, "longest.%s", name);
  const char *value = safetensors_value(&shard->file, key);
  CHECK(value && text_parse_integer(longest, value) && *longest >= 0, STATUS_DAMAGED,
        "'%s': ragged column '%s' has no length '%s' in the metadata", shard->file.source.path,
        name, key);
  return STATUS_OK;
}

/* What one shard says about the column. */
static enum status describe(const struct store_shard *shard, struct store_column *column) {
  const struct safetensors *file = &shard->file;
  struct safetensors_tensor plain;
  const struct safetensors_tensor *tensor = safetensors_find(file, column->name);
  const struct safetensors_tensor *offsets = safetensors_find(file, column->offsets_name);
  if (!tensor) return unknown_column(shard, column->name);
  TRY(byte_planes_find(&plain, &column->planes, file, tensor));
  CHECK(plain.dimensions >= 1 && (offsets || plain.shape[0] == shard->rows), STATUS_DAMAGED,
        "'%s': column '%s' does not have the %" PRId64 " rows of the shard", file->source.path,
        column->name, shard->rows);
  CHECK(!offsets || (offsets->dtype == DTYPE_I64 && offsets->dimensions == 1 &&
                     offsets->shape[0] == shard->rows + 1),
        STATUS_DAMAGED, "'%s': '%s' is not I64 [%" PRId64 "]", file->source.path,
        column->offsets_name, shard->rows + 1);
  column->dtype = plain.dtype;
  column->ragged = offsets != NULL;
  column->unit = (int64_t)(safetensors_row_bytes(&plain) / dtype_bytes(plain.dtype));
  column->dimensions = plain.dimensions - !offsets;
  for (int i = 0; i < column->dimensions; i++) column->shape[i] = plain.shape[i + !offsets];
  if (offsets) TRY(longest_of(shard, column->name, &column->shape[0]));
  column->width = column->unit * (offsets ? column->shape[0] : 1);
  return STATUS_OK;
}

/* Adds what another shard says. */
static enum status merge(struct store_column *column, const struct store_column *other,
                         const struct store_shard *shard) {
  bool same = column->dtype == other->dtype && column->ragged == other->ragged &&
              column->planes == other->planes && column->dimensions == other->dimensions;
  for (int i = other->ragged; same && i < column->dimensions; i++)
    same = column->shape[i] == other->shape[i];
  CHECK(same, STATUS_DAMAGED, "'%s': column '%s' differs in type or shape from the first shard's",
        shard->file.source.path, column->name);
  if (other->width > column->width) {
    column->width = other->width;
    column->shape[0] = other->shape[0];
  }
  return STATUS_OK;
}

enum status store_find(const struct store *store, struct store_column *column, const char *name) {
  struct store_column empty = {.store = store};
  CHECK(strlen(name) < sizeof empty.name, STATUS_MISMATCH, "no column is called '%s'", name);
  snprintf(empty.name, sizeof empty.name, "%s", name);
  snprintf(empty.offsets_name, sizeof empty.offsets_name, "%s.offsets", name);
  for (int64_t i = 0; i < store->shard_count; i++) {
    struct store_column found = empty;
    TRY(describe(&store->shards[i], &found));
    if (i == 0) *column = found;
    TRY(merge(column, &found, &store->shards[i]));
  }
  return STATUS_OK;
}
