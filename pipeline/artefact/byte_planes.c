#include "pipeline/artefact/byte_planes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void byte_planes_split(unsigned char *out, const unsigned char *in, size_t elements, size_t width) {
  for (size_t plane = 0; plane < width; plane++)
    for (size_t i = 0; i < elements; i++) out[plane * elements + i] = in[i * width + plane];
}

void byte_planes_join(unsigned char *out, const unsigned char *in, size_t elements, size_t width) {
  for (size_t plane = 0; plane < width; plane++)
    for (size_t i = 0; i < elements; i++) out[i * width + plane] = in[plane * elements + i];
}

/* Elements of one row. */
static int64_t row_elements(const struct safetensors_tensor *plain) {
  return (int64_t)(safetensors_row_bytes(plain) / dtype_bytes(plain->dtype));
}

static bool can_be_filtered(const struct safetensors_tensor *plain) {
  return plain->dimensions >= 1 && dtype_bytes(plain->dtype) > 1;
}

static void declare(struct safetensors_tensor *filtered, const struct safetensors_tensor *plain) {
  *filtered = (struct safetensors_tensor){
      .name = plain->name,
      .dtype = DTYPE_U8,
      .dimensions = 3,
      .shape = {plain->shape[0], (int64_t)dtype_bytes(plain->dtype), row_elements(plain)}};
}

enum status byte_planes_declare(struct safetensors_tensor *filtered, struct text *value,
                                const struct safetensors_tensor *plain) {
  char description[SAFETENSORS_DESCRIPTION];
  CHECK(can_be_filtered(plain), STATUS_MISMATCH,
        "tensor '%s' (%s) has no byte planes: it needs rows of elements of several bytes",
        plain->name, safetensors_describe(description, plain));
  declare(filtered, plain);
  text_clear(value);
  return text_add(value, safetensors_describe(description, plain));
}

/* Reads "BF16 [1000, 128, 768]". */
static bool parse(struct safetensors_tensor *plain, const char *value) {
  char type[8];
  int at = 0;
  if (sscanf(value, "%7s [%n", type, &at) != 1 || !at || !dtype_find(&plain->dtype, type))
    return false;
  while (plain->dimensions < SAFETENSORS_MAX_DIMENSIONS) {
    int used = 0;
    char after;
    if (sscanf(value + at, "%" SCNd64 "%c%n", &plain->shape[plain->dimensions], &after, &used) != 2)
      return false;
    if (plain->shape[plain->dimensions++] < 0) return false;
    at += used;
    if (after == ']') return value[at] == '\0';
    if (after != ',') return false;
  }
  return false;
}

static bool same(const struct safetensors_tensor *a, const struct safetensors_tensor *b) {
  return a->dtype == b->dtype && a->dimensions == b->dimensions &&
         memcmp(a->shape, b->shape, (size_t)a->dimensions * sizeof *a->shape) == 0;
}

enum status byte_planes_find(struct safetensors_tensor *plain, bool *is_filtered,
                             const struct safetensors *file,
                             const struct safetensors_tensor *tensor) {
  char key[256];
  *plain = *tensor;
  snprintf(key, sizeof key, "planes.%s", tensor->name);
  const char *value = safetensors_value(file, key);
  *is_filtered = value != NULL;
  if (!value) return STATUS_OK;
  struct safetensors_tensor found = {
      .name = tensor->name, .offset = tensor->offset, .bytes = tensor->bytes};
  struct safetensors_tensor filtered = {0};
  const bool sound = parse(&found, value) && can_be_filtered(&found);
  if (sound) declare(&filtered, &found);
  CHECK(sound && same(&filtered, tensor), STATUS_DAMAGED,
        "'%s': '%s' = '%s' does not describe the planes of tensor '%s'", file->source.path, key,
        value, tensor->name);
  *plain = found;
  return STATUS_OK;
}
