#include "pipeline/artefact/safetensors_writer.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, ALIGNMENT = 8 };
static const char NO_HASH[] = "00000000000000000000000000000000";

static enum status add_string(struct text *header, const char *string) {
  json_t *value = json_string(string);
  CHECK(value, STATUS_MISMATCH, "'%s' is not valid UTF-8: it cannot be a name in a header", string);
  char *quoted = json_dumps(value, JSON_ENCODE_ANY);
  json_decref(value);
  CHECK(quoted, STATUS_ENVIRONMENT, "out of memory");
  const enum status status = text_add(header, quoted);
  free(quoted);
  return status;
}

static enum status add_metadata(struct text *header, size_t *hash_at,
                                const struct safetensors_layout *layout) {
  TRY(text_add(header, "{\"__metadata__\":{\"data_hash\":\""));
  *hash_at = header->length;
  TRY(text_format(header, "%s\"", NO_HASH));
  for (int64_t i = 0; i < layout->pair_count; i++) {
    TRY(text_add(header, ","));
    TRY(add_string(header, layout->pairs[i].key));
    TRY(text_add(header, ":"));
    TRY(add_string(header, layout->pairs[i].value));
  }
  return text_add(header, "}");
}

/* Gives the tensor its place after those before it. */
static enum status place(struct safetensors_tensor *tensor, uint64_t offset, const char *path) {
  CHECK(tensor->name[0] && strcmp(tensor->name, "__metadata__") != 0, STATUS_MISMATCH,
        "'%s': a tensor cannot be called '%s'", path, tensor->name);
  CHECK(tensor->dimensions >= 0 && tensor->dimensions <= SAFETENSORS_MAX_DIMENSIONS,
        STATUS_MISMATCH, "'%s': tensor '%s' has %d dimensions, the limit is %d", path, tensor->name,
        tensor->dimensions, SAFETENSORS_MAX_DIMENSIONS);
  const int64_t width = (int64_t)dtype_bytes(tensor->dtype);
  int64_t bytes = width;
  for (int i = 0; i < tensor->dimensions; i++) {
    const int64_t size = tensor->shape[i];
    CHECK(size >= 0 && (!size || bytes <= INT64_MAX / size), STATUS_MISMATCH,
          "'%s': the shape of tensor '%s' is not possible", path, tensor->name);
    bytes *= size;
  }
  CHECK(offset % (uint64_t)width == 0, STATUS_MISMATCH,
        "'%s': tensor '%s' would start at byte %" PRIu64 ", not at a multiple of %" PRId64
        "; put wide types first",
        path, tensor->name, offset, width);
  CHECK((uint64_t)bytes <= INT64_MAX - offset, STATUS_MISMATCH, "'%s' would not fit in 64 bits",
        path);
  tensor->offset = offset;
  tensor->bytes = (uint64_t)bytes;
  return STATUS_OK;
}

static enum status add_tensor(struct text *header, const struct safetensors_tensor *tensor) {
  TRY(text_add(header, ","));
  TRY(add_string(header, tensor->name));
  TRY(text_format(header, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(tensor->dtype)));
  for (int i = 0; i < tensor->dimensions; i++)
    TRY(text_format(header, "%s%" PRId64, i ? "," : "", tensor->shape[i]));
  return text_format(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", tensor->offset,
                     tensor->offset + tensor->bytes);
}

static uint64_t end_of(const struct safetensors_layout *layout) {
  if (!layout->count) return 0;
  const struct safetensors_tensor *last = &layout->tensors[layout->count - 1];
  return last->offset + last->bytes;
}

static enum status add_tensors(struct text *header, const struct safetensors_layout *layout) {
  const size_t alignment = layout->alignment ? layout->alignment : ALIGNMENT;
  uint64_t end = 0;
  for (int64_t i = 0; i < layout->count; i++) {
    struct safetensors_tensor *tensor = &layout->tensors[i];
    TRY(place(tensor, end, layout->path));
    TRY(add_tensor(header, tensor));
    end = tensor->offset + tensor->bytes;
  }
  TRY(text_add(header, "}"));
  while (header->length % alignment) TRY(text_add(header, " "));
  return STATUS_OK;
}

/* Reads back what was composed: a header that our reader refuses is never written. */
static enum status prove(const struct text *header, const struct safetensors_layout *layout) {
  struct safetensors parsed = {.source.fd = -1};
  const enum status status =
      safetensors_parse(&parsed, header->bytes + LENGTH_BYTES, header->length - LENGTH_BYTES,
                        end_of(layout), layout->path);
  safetensors_close(&parsed);
  CHECK(status == STATUS_OK || status == STATUS_ENVIRONMENT, STATUS_MISMATCH, "%s",
        error_message());
  return status;
}

enum status safetensors_writer_compose(struct text *header, size_t *hash_at,
                                       const struct safetensors_layout *layout) {
  const uint64_t none = 0;
  text_clear(header);
  TRY(text_add_bytes(header, &none, LENGTH_BYTES));
  TRY(add_metadata(header, hash_at, layout));
  TRY(add_tensors(header, layout));
  const uint64_t length = header->length - LENGTH_BYTES;
  CHECK(length <= SAFETENSORS_MAX_HEADER, STATUS_MISMATCH,
        "'%s': a header of %" PRIu64 " bytes is above the limit of %d", layout->path, length,
        SAFETENSORS_MAX_HEADER);
  memcpy(header->bytes, &length, LENGTH_BYTES);
  return prove(header, layout);
}

static enum status prepare(struct safetensors_writer *writer,
                           const struct safetensors_layout *layout) {
  TRY(safetensors_writer_compose(&writer->header, &writer->hash_at, layout));
  writer->data_bytes = end_of(layout);
  return sink_open(&writer->sink, layout->path, layout->sink, writer->header.bytes,
                   writer->header.length);
}

enum status safetensors_writer_open(struct safetensors_writer *writer,
                                    const struct safetensors_layout *layout) {
  *writer = (struct safetensors_writer){.sink.fd = -1};
  const enum status status = prepare(writer, layout);
  if (status != STATUS_OK) safetensors_writer_abandon(writer);
  return status;
}

enum status safetensors_writer_append(struct safetensors_writer *writer, const void *bytes,
                                      uint64_t count) {
  CHECK(count <= writer->data_bytes - writer->written_bytes, STATUS_INTERNAL,
        "'%s': more than the declared %" PRIu64 " bytes were given", writer->sink.path,
        writer->data_bytes);
  writer->written_bytes += count;
  return sink_write(&writer->sink, bytes, count);
}

static enum status complete(struct safetensors_writer *writer) {
  char hex[HASH_HEX_BYTES];
  CHECK(writer->written_bytes == writer->data_bytes, STATUS_INTERNAL,
        "'%s': %" PRIu64 " of the declared %" PRIu64 " bytes were given", writer->sink.path,
        writer->written_bytes, writer->data_bytes);
  TRY(sink_flush(&writer->sink));
  hash_to_hex(hex, sink_data_hash(&writer->sink));
  memcpy(writer->header.bytes + writer->hash_at, hex, HASH_HEX_BYTES - 1);
  return sink_rewrite_head(&writer->sink, writer->header.bytes, writer->header.length);
}

enum status safetensors_writer_close(struct safetensors_writer *writer, struct blocks *blocks) {
  enum status status = complete(writer);
  if (status == STATUS_OK) status = sink_close(&writer->sink, blocks);
  safetensors_writer_abandon(writer);
  return status;
}

void safetensors_writer_abandon(struct safetensors_writer *writer) {
  sink_abandon(&writer->sink);
  text_free(&writer->header);
  *writer = (struct safetensors_writer){.sink.fd = -1};
}
