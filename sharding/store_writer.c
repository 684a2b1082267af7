#include "sharding/store_writer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/byte_planes.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/safetensors_writer.h"

enum dtype store_writer_token_type(int64_t vocabulary) {
  return vocabulary <= 65536 ? DTYPE_U16 : DTYPE_U32;
}

enum status store_writer_name(struct text *name, const struct store_writer_options *options) {
  const char *dash = options->tag[0] ? "-" : "";
  text_clear(name);
  return text_format(name, "%s%s%s-%05" PRId64 ".safetensors.zst", options->name, dash,
                     options->tag, options->index);
}

bool store_writer_is_done(const struct store_writer_options *options) {
  struct text name = {0};
  const bool done = store_writer_name(&name, options) == STATUS_OK &&
                    manifest_is_done(options->folder, name.bytes);
  text_free(&name);
  return done;
}

static enum status check_column(const struct store_writer_column *column) {
  CHECK(column->name[0] && strlen(column->name) < 64, STATUS_MISMATCH,
        "a column cannot be called '%s'", column->name);
  CHECK(column->dimensions >= 0 && column->dimensions < SAFETENSORS_MAX_DIMENSIONS &&
            (!column->ragged || column->dimensions >= 1),
        STATUS_MISMATCH, "column '%s' cannot have %d dimensions", column->name, column->dimensions);
  CHECK(!column->planes || (!column->ragged && dtype_bytes(column->dtype) > 1), STATUS_MISMATCH,
        "column '%s' cannot be filtered: it is ragged, or of single bytes", column->name);
  return STATUS_OK;
}

enum status store_writer_open(struct store_writer *writer,
                              const struct store_writer_options *options) {
  *writer = (struct store_writer){0};
  return store_writer_begin(writer, options);
}

enum status store_writer_begin(struct store_writer *writer,
                               const struct store_writer_options *options) {
  writer->options = *options;
  for (int64_t i = 0; i < STORE_WRITER_COLUMNS; i++) {
    writer->rows[i] = 0;
    writer->longest[i] = 0;
    text_clear(&writer->elements[i]);
    text_clear(&writer->offsets[i]);
  }
  CHECK(options->column_count >= 1 && options->column_count <= STORE_WRITER_COLUMNS &&
            options->pair_count <= STORE_WRITER_PAIRS,
        STATUS_MISMATCH, "a shard has 1 to %d columns and up to %d values, not %" PRId64,
        STORE_WRITER_COLUMNS, STORE_WRITER_PAIRS, options->column_count);
  for (int64_t i = 0; i < options->column_count; i++) TRY(check_column(&options->columns[i]));
  return STATUS_OK;
}

/* Elements of a fixed row; of one index of the first axis of a ragged row. */
static int64_t unit_of(const struct store_writer_column *column) {
  int64_t elements = 1;
  for (int i = column->ragged; i < column->dimensions; i++) elements *= column->shape[i];
  return elements;
}

static enum status add_ragged(struct store_writer *writer, int64_t column, int64_t count) {
  const struct store_writer_column *described = &writer->options.columns[column];
  const int64_t unit = unit_of(described), length = unit ? count / unit : 0;
  struct text *offsets = &writer->offsets[column];
  CHECK(length * unit == count, STATUS_MISMATCH,
        "column '%s': %" PRId64 " elements are no whole number of %" PRId64, described->name, count,
        unit);
  int64_t end = 0;
  if (!offsets->length) TRY(text_add_bytes(offsets, &end, sizeof end));
  memcpy(&end, offsets->bytes + offsets->length - sizeof end, sizeof end);
  end += length;
  if (length > writer->longest[column]) writer->longest[column] = length;
  return text_add_bytes(offsets, &end, sizeof end);
}

static enum status add_planes(struct text *out, const void *elements, size_t count, size_t width) {
  const size_t before = out->length;
  TRY(text_add_bytes(out, elements, count * width)); /* makes the room */
  byte_planes_split((unsigned char *)out->bytes + before, elements, count, width);
  return STATUS_OK;
}

enum status store_writer_add(struct store_writer *writer, int64_t column, const void *elements,
                             int64_t count) {
  const struct store_writer_column *described = &writer->options.columns[column];
  const size_t width = dtype_bytes(described->dtype);
  if (described->ragged)
    TRY(add_ragged(writer, column, count));
  else
    CHECK(count == unit_of(described), STATUS_MISMATCH,
          "column '%s': a row of %" PRId64 " elements, expected %" PRId64, described->name, count,
          unit_of(described));
  writer->rows[column]++;
  if (described->planes)
    return add_planes(&writer->elements[column], elements, (size_t)count, width);
  return text_add_bytes(&writer->elements[column], elements, (size_t)count * width);
}

/* The shard as tensors, each with its bytes and metadata. */
struct parts {
  int64_t count, pair_count;
  struct safetensors_tensor tensors[2 * STORE_WRITER_COLUMNS];
  const struct text *bytes[2 * STORE_WRITER_COLUMNS];
  char names[STORE_WRITER_COLUMNS][80];
  struct safetensors_pair pairs[STORE_WRITER_PAIRS + 2 * STORE_WRITER_COLUMNS + 2];
  char keys[2 * STORE_WRITER_COLUMNS + 2][96];
  struct text values[2 * STORE_WRITER_COLUMNS + 2];
  int64_t value_count;
};

/* A new metadata value, to be written by the caller. */
static struct text *add_value(struct parts *parts, const char *prefix, const char *name) {
  const int64_t i = parts->value_count++;
  snprintf(parts->keys[i], sizeof parts->keys[i], "%s%s", prefix, name);
  return &parts->values[i];
}

/* Values move while they are written, so the pairs are made at the end. */
static void finish_pairs(struct parts *parts, const struct store_writer_options *options) {
  for (int64_t i = 0; i < options->pair_count; i++)
    parts->pairs[parts->pair_count++] = options->pairs[i];
  for (int64_t i = 0; i < parts->value_count; i++)
    parts->pairs[parts->pair_count++] =
        (struct safetensors_pair){.key = parts->keys[i], .value = parts->values[i].bytes};
}

static enum status add_column(struct parts *parts, struct store_writer *writer, int64_t column) {
  const struct store_writer_column *described = &writer->options.columns[column];
  const int64_t at = parts->count++, unit = unit_of(described);
  const uint64_t row_bytes = (uint64_t)unit * dtype_bytes(described->dtype);
  struct safetensors_tensor plain = {.name = (char *)described->name, .dtype = described->dtype};
  plain.dimensions = described->dimensions + !described->ragged;
  plain.shape[0] = described->ragged && row_bytes
                       ? (int64_t)(writer->elements[column].length / row_bytes)
                       : writer->rows[column];
  for (int i = described->ragged; i < described->dimensions; i++)
    plain.shape[i + !described->ragged] = described->shape[i];
  parts->tensors[at] = plain;
  parts->bytes[at] = &writer->elements[column];
  if (!described->planes) return STATUS_OK;
  struct text *value = add_value(parts, "planes.", described->name);
  return byte_planes_declare(&parts->tensors[at], value, &plain);
}

static enum status add_offsets(struct parts *parts, struct store_writer *writer, int64_t column) {
  const int64_t at = parts->count++, none = 0;
  const char *name = writer->options.columns[column].name;
  if (!writer->offsets[column].length)
    TRY(text_add_bytes(&writer->offsets[column], &none, sizeof none));
  snprintf(parts->names[column], sizeof parts->names[column], "%s.offsets", name);
  parts->tensors[at] = (struct safetensors_tensor){.name = parts->names[column],
                                                   .dtype = DTYPE_I64,
                                                   .dimensions = 1,
                                                   .shape = {writer->rows[column] + 1}};
  parts->bytes[at] = &writer->offsets[column];
  return text_format(add_value(parts, "longest.", name), "%" PRId64, writer->longest[column]);
}

/* Wide types first, so that every tensor is aligned. */
static enum status collect(struct parts *parts, struct store_writer *writer) {
  TRY(text_format(add_value(parts, "rows", ""), "%" PRId64, writer->rows[0]));
  for (int64_t i = 0; i < writer->options.column_count; i++) {
    CHECK(writer->rows[i] == writer->rows[0], STATUS_INTERNAL,
          "column '%s' has %" PRId64 " rows, column '%s' has %" PRId64,
          writer->options.columns[i].name, writer->rows[i], writer->options.columns[0].name,
          writer->rows[0]);
    if (writer->options.columns[i].ragged) TRY(add_offsets(parts, writer, i));
  }
  for (size_t width = 8; width >= 1; width /= 2)
    for (int64_t i = 0; i < writer->options.column_count; i++) {
      const struct store_writer_column *column = &writer->options.columns[i];
      if ((column->planes ? 1 : dtype_bytes(column->dtype)) == width)
        TRY(add_column(parts, writer, i));
    }
  finish_pairs(parts, &writer->options);
  return STATUS_OK;
}

static enum status write_file(struct parts *parts, const struct store_writer *writer,
                              const char *path, struct blocks *blocks) {
  const struct safetensors_layout layout = {
      .path = path,
      .sink = {.level = writer->options.level, .frame_bytes = STORE_WRITER_FRAME_BYTES},
      .tensors = parts->tensors,
      .count = parts->count,
      .pairs = parts->pairs,
      .pair_count = parts->pair_count};
  struct safetensors_writer file;
  TRY(safetensors_writer_open(&file, &layout));
  enum status status = STATUS_OK;
  for (int64_t i = 0; i < parts->count && status == STATUS_OK; i++)
    if (parts->bytes[i]->length)
      status = safetensors_writer_append(&file, parts->bytes[i]->bytes, parts->bytes[i]->length);
  if (status == STATUS_OK) return safetensors_writer_close(&file, blocks);
  safetensors_writer_abandon(&file);
  return status;
}

static enum status write_shard(struct parts *parts, struct store_writer *writer,
                               struct text *name) {
  char path[PATH_MAX];
  struct blocks blocks = {0};
  TRY(collect(parts, writer));
  TRY(store_writer_name(name, &writer->options));
  TRY(manifest_join(path, writer->options.folder, name->bytes));
  TRY(write_file(parts, writer, path, &blocks));
  const enum status status = manifest_write_done(writer->options.folder, name->bytes, &blocks);
  blocks_free(&blocks);
  return status;
}

enum status store_writer_write(struct store_writer *writer) {
  struct parts *parts = calloc(1, sizeof *parts);
  struct text name = {0};
  CHECK(parts, STATUS_ENVIRONMENT, "out of memory");
  const enum status status = write_shard(parts, writer, &name);
  for (int64_t i = 0; i < parts->value_count; i++) text_free(&parts->values[i]);
  text_free(&name);
  free(parts);
  return status;
}

enum status store_writer_close(struct store_writer *writer) {
  const enum status status = store_writer_write(writer);
  store_writer_abandon(writer);
  return status;
}

void store_writer_abandon(struct store_writer *writer) {
  for (int64_t i = 0; i < STORE_WRITER_COLUMNS; i++) {
    text_free(&writer->elements[i]);
    text_free(&writer->offsets[i]);
  }
  *writer = (struct store_writer){0};
}
