/* safetensors files: what opens can be read to its last row. */
#include "tests/common/fuzz.h"

#include <string.h>

#include "pipeline/artefact/safetensors.h"
#include "pipeline/artefact/shard_rows.h"

enum { ROWS = 4, ROW_BYTES = 1 << 20 };

static void add_file(const char *header, const void *data, size_t count) {
  struct text file = {0};
  const uint64_t length = strlen(header);
  fuzz_require(text_add_bytes(&file, &length, sizeof length) == STATUS_OK &&
                   text_add(&file, header) == STATUS_OK &&
                   text_add_bytes(&file, data, count) == STATUS_OK,
               "memory suffices");
  fuzz_seed(file.bytes, file.length);
  text_free(&file);
}

void fuzz_make_seeds(void) {
  static const int64_t offsets[] = {0, 3, 4};
  char data[64] = {0};
  memcpy(data, offsets, sizeof offsets);
  memcpy(data + 24, "\1\2\3\4", 4);
  add_file("{}", "", 0);
  add_file("{\"x\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
           "\"y\":{\"dtype\":\"BF16\",\"shape\":[2,0],\"data_offsets\":[4,4]}}",
           data, 4);
  add_file("{\"__metadata__\":{\"rows\":\"2\"},"
           "\"t.offsets\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]},"
           "\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[24,28]}}",
           data, 28);
  add_file("{\"__metadata__\":{\"planes.e\":\"BF16 [2, 2, 4]\",\"rows\":\"2\","
           "\"data_hash\":\"00000000000000000000000000000000\"},"
           "\"e\":{\"dtype\":\"U8\",\"shape\":[2,2,8],\"data_offsets\":[0,32]}}",
           data, 32);
}

static void read_rows(const struct safetensors *file, const char *name,
                      struct source_cache *cache) {
  struct shard_rows column;
  struct text bytes = {0}, line = {0};
  if (shard_rows_find(&column, file, name) != STATUS_OK) return;
  fuzz_require(column.rows >= 0, "a column has no negative number of rows");
  for (int64_t row = 0; row < column.rows && row < ROWS; row++) {
    if (safetensors_row_bytes(&column.plain) > ROW_BYTES) break;
    if (shard_rows_read(&column, cache, row, &bytes) != STATUS_OK) break;
    text_clear(&line);
    fuzz_require(shard_rows_format(&line, &column, &bytes, 8) == STATUS_OK, "a row can be shown");
  }
  text_free(&bytes);
  text_free(&line);
}

static void check_tensor(const struct safetensors *file, int64_t index, uint64_t *end) {
  char description[SAFETENSORS_DESCRIPTION];
  const struct safetensors_tensor *tensor = &file->tensors[index];
  fuzz_require(tensor->offset == *end, "tensors follow one another");
  fuzz_require((uint64_t)safetensors_elements(tensor) * dtype_bytes(tensor->dtype) == tensor->bytes,
               "a tensor has the bytes of its shape");
  fuzz_require(safetensors_find(file, tensor->name) == tensor, "names are different");
  safetensors_describe(description, tensor);
  *end += tensor->bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  struct safetensors file;
  struct source_cache cache = {0};
  uint64_t end = 0;
  if (safetensors_open(&file, fuzz_file("x.safetensors", bytes, count), NULL) != STATUS_OK)
    return 0;
  for (int64_t i = 0; i < file.count; i++) {
    check_tensor(&file, i, &end);
    read_rows(&file, file.tensors[i].name, &cache);
  }
  fuzz_require(end == file.source.content_bytes - file.header_bytes, "tensors cover the data");
  (void)safetensors_verify(&file);
  source_cache_free(&cache);
  safetensors_close(&file);
  return 0;
}
