/* shard_rows.h: plain copies. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/safetensors_writer.h"
#include "pipeline/artefact/shard_rows.h"
#include "pipeline/base/file.h"

struct copy {
  const struct safetensors *file;
  struct safetensors_tensor *tensors; /* owned; as they will be */
  int64_t *order;                     /* owned; tensors of the file, wide types first */
  struct safetensors_pair *pairs;     /* owned; keys and values borrowed */
  int64_t pair_count;
  struct source_cache cache;
  struct text row;
};

static enum status copy_rows(struct copy *copy, struct safetensors_writer *writer,
                             const struct shard_rows *column) {
  struct shard_rows whole = *column;
  whole.offsets = NULL; /* the elements of ragged rows follow one another */
  whole.rows = whole.plain.dimensions ? whole.plain.shape[0] : 1;
  for (int64_t row = 0; row < whole.rows; row++) {
    TRY(shard_rows_read(&whole, &copy->cache, row, &copy->row));
    TRY(safetensors_writer_append(writer, copy->row.bytes, copy->row.length));
  }
  return STATUS_OK;
}

static enum status copy_bytes(struct copy *copy, struct safetensors_writer *writer,
                              const struct safetensors_tensor *tensor) {
  unsigned char piece[1 << 16];
  for (uint64_t at = 0; at < tensor->bytes; at += sizeof piece) {
    const uint64_t left = tensor->bytes - at;
    const struct blocks_range range = {.offset = at,
                                       .bytes = left < sizeof piece ? left : sizeof piece};
    TRY(safetensors_read(copy->file, &copy->cache, tensor, piece, range));
    TRY(safetensors_writer_append(writer, piece, range.bytes));
  }
  return STATUS_OK;
}

static enum status copy_tensor(struct copy *copy, struct safetensors_writer *writer,
                               const struct safetensors_tensor *tensor) {
  struct shard_rows column;
  TRY(shard_rows_find(&column, copy->file, tensor->name));
  if (column.planes) return copy_rows(copy, writer, &column);
  return copy_bytes(copy, writer, tensor);
}

/* Undoing the filters changes types, so the tensors are put in order anew. */
static enum status plan(struct copy *copy) {
  int64_t count = 0;
  for (size_t width = 8; width >= 1; width /= 2) {
    for (int64_t i = 0; i < copy->file->count; i++) {
      struct shard_rows column;
      TRY(shard_rows_find(&column, copy->file, copy->file->tensors[i].name));
      if (dtype_bytes(column.plain.dtype) != width) continue;
      copy->tensors[count] = column.plain;
      copy->order[count++] = i;
    }
  }
  for (int64_t i = 0; i < copy->file->pair_count; i++) {
    const struct safetensors_pair *pair = &copy->file->pairs[i];
    if (strncmp(pair->key, "planes.", 7) == 0 || strcmp(pair->key, "data_hash") == 0) continue;
    copy->pairs[copy->pair_count++] = *pair;
  }
  return STATUS_OK;
}

static enum status write_copy(struct copy *copy, const char *path) {
  struct safetensors_writer writer;
  TRY(plan(copy));
  const struct safetensors_layout layout = {.path = path,
                                            .tensors = copy->tensors,
                                            .count = copy->file->count,
                                            .pairs = copy->pairs,
                                            .pair_count = copy->pair_count};
  TRY(safetensors_writer_open(&writer, &layout));
  enum status status = STATUS_OK;
  for (int64_t i = 0; i < copy->file->count && status == STATUS_OK; i++)
    status = copy_tensor(copy, &writer, &copy->file->tensors[copy->order[i]]);
  if (status == STATUS_OK) return safetensors_writer_close(&writer, NULL);
  safetensors_writer_abandon(&writer);
  return status;
}

static enum status check_copy(const char *path) {
  struct safetensors made;
  TRY(safetensors_open(&made, path, NULL));
  const enum status status = safetensors_verify(&made);
  safetensors_close(&made);
  return status;
}

enum status shard_rows_export(const struct safetensors *file, const char *path) {
  CHECK(!file_exists(path), STATUS_WRITE, "'%s' is there already; remove it or name another file",
        path);
  struct copy copy = {.file = file,
                      .tensors = calloc((size_t)file->count + 1, sizeof *copy.tensors),
                      .order = calloc((size_t)file->count + 1, sizeof *copy.order),
                      .pairs = calloc((size_t)file->pair_count + 1, sizeof *copy.pairs)};
  enum status status = STATUS_OK;
  if (!copy.tensors || !copy.order || !copy.pairs)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__, "out of memory");
  if (status == STATUS_OK) status = write_copy(&copy, path);
  if (status == STATUS_OK) status = check_copy(path);
  if (status != STATUS_OK) file_remove(path);
  free(copy.tensors);
  free(copy.order);
  free(copy.pairs);
  text_free(&copy.row);
  source_cache_free(&copy.cache);
  return status;
}
