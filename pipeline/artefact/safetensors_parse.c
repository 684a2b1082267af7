/* safetensors.h: the header. Everything a file claims is checked here, before it is used. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/safetensors.h"

struct parse {
  struct safetensors *file;
  const char *path;
  uint64_t data_bytes;
};

static enum status copy_string(char **copy, const json_t *value, const char *path,
                               const char *what) {
  CHECK(json_is_string(value), STATUS_DAMAGED, "'%s': %s is not a string", path, what);
  *copy = strdup(json_string_value(value));
  CHECK(*copy, STATUS_ENVIRONMENT, "out of memory");
  return STATUS_OK;
}

static enum status parse_metadata(struct parse *parse, json_t *object) {
  struct safetensors *file = parse->file;
  CHECK(json_is_object(object), STATUS_DAMAGED, "'%s': __metadata__ is not an object", parse->path);
  file->pairs = calloc(json_object_size(object) + 1, sizeof *file->pairs);
  CHECK(file->pairs, STATUS_ENVIRONMENT, "out of memory");
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    struct safetensors_pair *pair = &file->pairs[file->pair_count++];
    TRY(copy_string(&pair->value, value, parse->path, "a value of __metadata__"));
    pair->key = strdup(key);
    CHECK(pair->key, STATUS_ENVIRONMENT, "out of memory");
  }
  return STATUS_OK;
}

static enum status parse_shape(struct parse *parse, struct safetensors_tensor *tensor,
                               const json_t *shape) {
  CHECK(json_is_array(shape), STATUS_DAMAGED, "'%s': tensor '%s' has no list 'shape'", parse->path,
        tensor->name);
  const size_t count = json_array_size(shape);
  CHECK(count <= SAFETENSORS_MAX_DIMENSIONS, STATUS_DAMAGED,
        "'%s': tensor '%s' has %zu dimensions, the limit is %d", parse->path, tensor->name, count,
        SAFETENSORS_MAX_DIMENSIONS);
  tensor->dimensions = (int)count;
  int64_t elements = (int64_t)dtype_bytes(tensor->dtype);
  for (size_t i = 0; i < count; i++) {
    const json_t *size = json_array_get(shape, i);
    CHECK(json_is_integer(size) && json_integer_value(size) >= 0, STATUS_DAMAGED,
          "'%s': shape of tensor '%s' holds something that is no size", parse->path, tensor->name);
    tensor->shape[i] = json_integer_value(size);
    CHECK(!tensor->shape[i] || elements <= INT64_MAX / tensor->shape[i], STATUS_DAMAGED,
          "'%s': the size of tensor '%s' overflows 64 bits", parse->path, tensor->name);
    elements *= tensor->shape[i];
  }
  tensor->bytes = (uint64_t)elements;
  return STATUS_OK;
}

static enum status parse_offsets(struct parse *parse, struct safetensors_tensor *tensor,
                                 const json_t *offsets) {
  const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
  CHECK(json_array_size(offsets) == 2 && json_is_integer(first) && json_is_integer(last),
        STATUS_DAMAGED, "'%s': tensor '%s' has no 'data_offsets' [begin, end]", parse->path,
        tensor->name);
  const int64_t begin = json_integer_value(first), end = json_integer_value(last);
  CHECK(begin >= 0 && end >= begin, STATUS_DAMAGED,
        "'%s': data_offsets [%" PRId64 ", %" PRId64 "] of tensor '%s' are not a range", parse->path,
        begin, end, tensor->name);
  CHECK((uint64_t)(end - begin) == tensor->bytes, STATUS_DAMAGED,
        "'%s': tensor '%s' has %" PRId64 " bytes, its type and shape need %" PRIu64, parse->path,
        tensor->name, end - begin, tensor->bytes);
  tensor->offset = (uint64_t)begin;
  return STATUS_OK;
}

static enum status parse_tensor(struct parse *parse, const char *name, json_t *entry) {
  struct safetensors_tensor *tensor = &parse->file->tensors[parse->file->count++];
  tensor->name = strdup(name);
  CHECK(tensor->name, STATUS_ENVIRONMENT, "out of memory");
  CHECK(json_is_object(entry) && json_object_size(entry) == 3, STATUS_DAMAGED,
        "'%s': tensor '%s' is not an object of dtype, shape and data_offsets", parse->path, name);
  const char *type = json_string_value(json_object_get(entry, "dtype"));
  CHECK(type, STATUS_DAMAGED, "'%s': tensor '%s' has no string 'dtype'", parse->path, name);
  CHECK(dtype_find(&tensor->dtype, type), STATUS_DAMAGED,
        "'%s': tensor '%s' has the unknown type '%s'", parse->path, name, type);
  TRY(parse_shape(parse, tensor, json_object_get(entry, "shape")));
  return parse_offsets(parse, tensor, json_object_get(entry, "data_offsets"));
}

static int by_offset(const void *a, const void *b) {
  const struct safetensors_tensor *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1; /* empty ones first */
  return strcmp(x->name, y->name);
}

/* Tensors must cover the data section once: no hole, no overlap, nothing after the last. */
static enum status check_cover(struct parse *parse) {
  struct safetensors *file = parse->file;
  if (file->count) qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_offset);
  uint64_t end = 0;
  for (int64_t i = 0; i < file->count; i++) {
    const struct safetensors_tensor *tensor = &file->tensors[i];
    CHECK(tensor->offset == end, STATUS_DAMAGED,
          "'%s': tensor '%s' begins at byte %" PRIu64 " of the data, %s at %" PRIu64, parse->path,
          tensor->name, tensor->offset,
          tensor->offset < end ? "overlapping the one that ends" : "leaving a hole that begins",
          end);
    end += tensor->bytes;
  }
  CHECK(end <= parse->data_bytes, STATUS_DAMAGED,
        "'%s' is %" PRIu64 " bytes short of what its header describes: looks like a truncated "
        "download",
        parse->path, end - parse->data_bytes);
  CHECK(end == parse->data_bytes, STATUS_DAMAGED,
        "'%s' has %" PRIu64 " bytes after its last tensor", parse->path, parse->data_bytes - end);
  return STATUS_OK;
}

static enum status parse_object(struct parse *parse, json_t *root) {
  struct safetensors *file = parse->file;
  CHECK(json_is_object(root), STATUS_DAMAGED, "'%s': the header is not a JSON object", parse->path);
  file->tensors = calloc(json_object_size(root) + 1, sizeof *file->tensors);
  CHECK(file->tensors, STATUS_ENVIRONMENT, "out of memory: %zu tensors", json_object_size(root));
  const char *key;
  json_t *value;
  json_object_foreach(root, key, value) {
    if (strcmp(key, "__metadata__") == 0)
      TRY(parse_metadata(parse, value));
    else
      TRY(parse_tensor(parse, key, value));
  }
  return check_cover(parse);
}

enum status safetensors_parse(struct safetensors *file, const char *header, uint64_t bytes,
                              uint64_t data_bytes, const char *path) {
  struct parse parse = {.file = file, .path = path, .data_bytes = data_bytes};
  json_error_t error;
  CHECK(bytes && header[0] == '{', STATUS_DAMAGED, "'%s': the header does not begin with '{'",
        path);
  json_t *root = json_loadb(header, bytes, JSON_REJECT_DUPLICATES, &error);
  CHECK(root, STATUS_DAMAGED, "'%s': the header is not sound JSON at byte %d: %s", path,
        8 + error.position, error.text);
  const enum status status = parse_object(&parse, root);
  json_decref(root);
  return status;
}
