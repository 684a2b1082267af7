#include "pipeline/artefact/shard_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/artefact/byte_planes.h"
#include "pipeline/artefact/convert.h"

static bool is_offsets(const struct safetensors_tensor *tensor) {
  const size_t length = strlen(tensor->name);
  return length > 8 && strcmp(tensor->name + length - 8, ".offsets") == 0;
}

static enum status find_tensor(const struct safetensors_tensor **tensor,
                               const struct safetensors *file, const char *name) {
  const char *names[64];
  size_t count = 0;
  for (int64_t i = 0; i < file->count && count < 64; i++) {
    if (is_offsets(&file->tensors[i])) continue;
    names[count++] = file->tensors[i].name;
  }
  *tensor = name ? safetensors_find(file, name) : count ? safetensors_find(file, names[0]) : NULL;
  if (*tensor) return STATUS_OK;
  const char *near = name ? text_nearest(name, names, count) : NULL;
  FAIL(STATUS_MISMATCH, "'%s' has no column '%s'%s%s", file->source.path, name ? name : "",
       near ? "; the nearest name is " : "", near ? near : "");
}

enum status shard_rows_find(struct shard_rows *column, const struct safetensors *file,
                            const char *name) {
  char offsets[256];
  *column = (struct shard_rows){.file = file};
  TRY(find_tensor(&column->tensor, file, name));
  snprintf(offsets, sizeof offsets, "%s.offsets", column->tensor->name);
  column->offsets = safetensors_find(file, offsets);
  CHECK(!column->offsets || (column->offsets->dtype == DTYPE_I64 &&
                             column->offsets->dimensions == 1 && column->offsets->shape[0] >= 1),
        STATUS_DAMAGED, "'%s': '%s' is not a list of I64", file->source.path, offsets);
  TRY(byte_planes_find(&column->plain, &column->planes, file, column->tensor));
  column->rows = column->offsets            ? column->offsets->shape[0] - 1
                 : column->plain.dimensions ? column->plain.shape[0]
                                            : 1;
  return STATUS_OK;
}

static enum status locate(const struct shard_rows *column, struct source_cache *cache, int64_t row,
                          struct blocks_range *range) {
  const uint64_t width = safetensors_row_bytes(&column->plain);
  int64_t ends[2] = {row, row + 1};
  CHECK(row >= 0 && row < column->rows, STATUS_MISMATCH,
        "'%s' has %" PRId64 " rows, no row %" PRId64, column->file->source.path, column->rows, row);
  if (column->offsets)
    TRY(safetensors_read(
        column->file, cache, column->offsets, ends,
        (struct blocks_range){.offset = (uint64_t)row * sizeof *ends, .bytes = sizeof ends}));
  CHECK(!column->offsets ||
            (ends[0] >= 0 && ends[1] >= ends[0] && ends[1] <= column->plain.shape[0]),
        STATUS_DAMAGED, "'%s': row %" PRId64 " is [%" PRId64 ", %" PRId64 ")",
        column->file->source.path, row, ends[0], ends[1]);
  range->offset = (uint64_t)ends[0] * width;
  range->bytes = (uint64_t)(ends[1] - ends[0]) * width;
  return STATUS_OK;
}

static enum status reserve(struct text *text, uint64_t bytes) {
  char zeros[4096] = {0};
  text_clear(text);
  while (text->length < bytes) {
    const uint64_t left = bytes - text->length;
    TRY(text_add_bytes(text, zeros, left < sizeof zeros ? left : sizeof zeros));
  }
  return text_add(text, "");
}

enum status shard_rows_read(const struct shard_rows *column, struct source_cache *cache,
                            int64_t row, struct text *bytes) {
  struct blocks_range range;
  TRY(locate(column, cache, row, &range));
  TRY(reserve(bytes, range.bytes));
  TRY(safetensors_read(column->file, cache, column->tensor, bytes->bytes, range));
  if (!column->planes) return STATUS_OK;
  struct text joined = {0};
  const size_t width = dtype_bytes(column->plain.dtype);
  const enum status status = reserve(&joined, range.bytes);
  if (status == STATUS_OK) {
    byte_planes_join((unsigned char *)joined.bytes, (const unsigned char *)bytes->bytes,
                     range.bytes / width, width);
    memcpy(bytes->bytes, joined.bytes, range.bytes);
  }
  text_free(&joined);
  return status;
}

static bool is_text(const struct shard_rows *column, const struct text *bytes) {
  return column->offsets && column->plain.dtype == DTYPE_U8 &&
         text_valid_utf8(bytes->bytes, bytes->length) == bytes->length;
}

static enum status add_characters(struct text *line, const struct text *bytes, size_t limit) {
  size_t count = bytes->length < limit ? bytes->length : limit;
  while (count < bytes->length && (bytes->bytes[count] & 0xc0) == 0x80) count++;
  TRY(text_add(line, "\""));
  for (size_t i = 0; i < count; i++) {
    const char c = bytes->bytes[i];
    if (c == '\n')
      TRY(text_add(line, "\\n"));
    else
      TRY(text_add_bytes(line, &c, 1));
  }
  return text_format(line, "\"%s", count < bytes->length ? " ..." : "");
}

static bool is_real(enum dtype dtype) {
  return dtype == DTYPE_F16 || dtype == DTYPE_BF16 || dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

/* One element; 64-bit ones that do not fit in 32 bits are shown as bytes. */
static enum status add_number(struct text *line, const char *at, enum dtype dtype) {
  float real;
  int32_t integer;
  if (is_real(dtype)) {
    TRY(convert_to_float(&real, at, dtype, 1));
    return text_format(line, " %.6g", (double)real);
  }
  const enum dtype type = dtype == DTYPE_BOOL ? DTYPE_U8 : dtype;
  if (convert_to_int32(&integer, at, type, 1) == STATUS_OK)
    return text_format(line, " %d", integer);
  TRY(text_add(line, " 0x"));
  for (size_t i = dtype_bytes(dtype); i-- > 0;)
    TRY(text_format(line, "%02x", (unsigned)(unsigned char)at[i]));
  return STATUS_OK;
}

enum status shard_rows_format(struct text *line, const struct shard_rows *column,
                              const struct text *bytes, size_t limit) {
  const size_t width = dtype_bytes(column->plain.dtype), count = bytes->length / width;
  if (is_text(column, bytes)) return add_characters(line, bytes, 4 * limit);
  TRY(text_format(line, "[%zu]", count));
  for (size_t i = 0; i < count && i < limit; i++)
    TRY(add_number(line, bytes->bytes + i * width, column->plain.dtype));
  return text_add(line, count > limit ? " ..." : "");
}
