#include "pipeline/artefact/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/artefact/convert.h"
#include "pipeline/base/little_endian.h"
#include "pipeline/base/text.h"

enum { LENGTH_BYTES = 8 };

/* What a file that is no safetensors file may be instead; "" when nothing comes to mind. */
static const char *guess(const unsigned char start[LENGTH_BYTES]) {
  if (memcmp(start, "version ", 8) == 0) return ": looks like a Git LFS pointer, not the file";
  if (memcmp(start, "<!DOCTYP", 8) == 0 || memcmp(start, "<!doctyp", 8) == 0 ||
      memcmp(start, "<html", 5) == 0)
    return ": looks like a web page (HTML), not the file";
  if (start[0] == '{') return ": looks like JSON, without the length before it";
  if (memcmp(start, "PK\3\4", 4) == 0) return ": looks like a zip archive (a PyTorch file?)";
  return "";
}

static enum status read_header(struct safetensors *file, struct source_cache *cache,
                               struct text *header) {
  const struct source *source = &file->source;
  unsigned char start[LENGTH_BYTES] = {0};
  CHECK(source->content_bytes >= LENGTH_BYTES, STATUS_DAMAGED,
        "'%s' has %" PRIu64 " bytes: looks like a truncated download", source->path,
        source->content_bytes);
  TRY(source_read(source, cache, start, 0, LENGTH_BYTES));
  const uint64_t length = little_endian_get64(start);
  CHECK(length <= SAFETENSORS_MAX_HEADER, STATUS_DAMAGED,
        "'%s' is no safetensors file: a header of %" PRIu64 " bytes%s", source->path, length,
        guess(start));
  CHECK(length <= source->content_bytes - LENGTH_BYTES, STATUS_DAMAGED,
        "'%s' ends at byte %" PRIu64 ", inside its header of %" PRIu64
        " bytes: looks like a truncated download",
        source->path, source->content_bytes, length);
  file->header_bytes = LENGTH_BYTES + length;
  header->bytes = malloc(length + 1);
  CHECK(header->bytes, STATUS_ENVIRONMENT, "out of memory: the header of '%s'", source->path);
  header->length = length;
  return source_read(source, cache, header->bytes, LENGTH_BYTES, length);
}

static enum status read_and_parse(struct safetensors *file) {
  struct text header = {0};
  struct source_cache cache = {0};
  enum status status = read_header(file, &cache, &header);
  if (status == STATUS_OK)
    status = safetensors_parse(file, header.bytes, header.length,
                               file->source.content_bytes - file->header_bytes, file->source.path);
  text_free(&header);
  source_cache_free(&cache);
  return status;
}

enum status safetensors_open(struct safetensors *file, const char *path,
                             const struct blocks *blocks) {
  *file = (struct safetensors){0};
  TRY(source_open(&file->source, path, blocks));
  const enum status status = read_and_parse(file);
  if (status != STATUS_OK) safetensors_close(file);
  return status;
}

void safetensors_close(struct safetensors *file) {
  for (int64_t i = 0; i < file->count; i++) free(file->tensors[i].name);
  for (int64_t i = 0; i < file->pair_count; i++) {
    free(file->pairs[i].key);
    free(file->pairs[i].value);
  }
  free(file->tensors);
  free(file->pairs);
  source_close(&file->source);
  *file = (struct safetensors){.source.fd = -1};
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file,
                                                  const char *name) {
  for (int64_t i = 0; i < file->count; i++)
    if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
  return NULL;
}

static enum status missing(const struct safetensors *file, const char *name) {
  const char **names = malloc(((size_t)file->count + 1) * sizeof *names);
  CHECK(names, STATUS_ENVIRONMENT, "out of memory");
  for (int64_t i = 0; i < file->count; i++) names[i] = file->tensors[i].name;
  const char *near = text_nearest(name, names, (size_t)file->count);
  free(names);
  CHECK(near, STATUS_MISMATCH, "'%s' has no tensor '%s'", file->source.path, name);
  FAIL(STATUS_MISMATCH, "'%s' has no tensor '%s'; the nearest name is '%s'", file->source.path,
       name, near);
}

enum status safetensors_require(const struct safetensors *file,
                                const struct safetensors_tensor **tensor,
                                const struct safetensors_tensor *expected) {
  *tensor = safetensors_find(file, expected->name);
  if (!*tensor) return missing(file, expected->name);
  struct safetensors_tensor wanted = *expected;
  bool fits = wanted.dtype == (*tensor)->dtype && wanted.dimensions == (*tensor)->dimensions;
  for (int i = 0; fits && i < wanted.dimensions; i++)
    fits = wanted.shape[i] == -1 || wanted.shape[i] == (*tensor)->shape[i];
  if (fits) return STATUS_OK;
  char expects[SAFETENSORS_DESCRIPTION], found[SAFETENSORS_DESCRIPTION];
  FAIL(STATUS_MISMATCH, "'%s': tensor '%s' is %s, expected %s", file->source.path, wanted.name,
       safetensors_describe(found, *tensor), safetensors_describe(expects, &wanted));
}

char *safetensors_describe(char out[SAFETENSORS_DESCRIPTION],
                           const struct safetensors_tensor *tensor) {
  size_t at = (size_t)snprintf(out, SAFETENSORS_DESCRIPTION, "%s [", dtype_name(tensor->dtype));
  for (int i = 0; i < tensor->dimensions; i++)
    at += (size_t)snprintf(out + at, SAFETENSORS_DESCRIPTION - at, "%s%" PRId64, i ? ", " : "",
                           tensor->shape[i]);
  snprintf(out + at, SAFETENSORS_DESCRIPTION - at, "]");
  return out;
}

const char *safetensors_value(const struct safetensors *file, const char *key) {
  for (int64_t i = 0; i < file->pair_count; i++)
    if (strcmp(file->pairs[i].key, key) == 0) return file->pairs[i].value;
  return NULL;
}

int64_t safetensors_elements(const struct safetensors_tensor *tensor) {
  int64_t elements = 1;
  for (int i = 0; i < tensor->dimensions; i++) elements *= tensor->shape[i];
  return elements;
}

uint64_t safetensors_row_bytes(const struct safetensors_tensor *tensor) {
  uint64_t bytes = dtype_bytes(tensor->dtype);
  for (int i = 1; i < tensor->dimensions; i++) bytes *= (uint64_t)tensor->shape[i];
  return bytes;
}

enum status safetensors_read(const struct safetensors *file, struct source_cache *cache,
                             const struct safetensors_tensor *tensor, void *out,
                             struct blocks_range bytes) {
  CHECK(bytes.offset <= tensor->bytes && bytes.bytes <= tensor->bytes - bytes.offset,
        STATUS_INTERNAL, "'%s': bytes beyond the end of tensor '%s' were asked for",
        file->source.path, tensor->name);
  return source_read(&file->source, cache, out, file->header_bytes + tensor->offset + bytes.offset,
                     bytes.bytes);
}

enum status safetensors_read_floats(const struct safetensors *file, struct source_cache *cache,
                                    const struct safetensors_tensor *tensor, float *out) {
  enum { PIECE = 1 << 12 };
  unsigned char piece[PIECE * 8];
  const uint64_t width = dtype_bytes(tensor->dtype);
  for (uint64_t at = 0; at < tensor->bytes; at += PIECE * width) {
    const uint64_t left = tensor->bytes - at;
    const struct blocks_range range = {.offset = at,
                                       .bytes = left < PIECE * width ? left : PIECE * width};
    TRY(safetensors_read(file, cache, tensor, piece, range));
    TRY(convert_to_float(out + at / width, piece, tensor->dtype, (int64_t)(range.bytes / width)));
  }
  return STATUS_OK;
}
