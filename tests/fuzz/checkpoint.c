/* Checkpoints: the pointer `latest`, and a file of pieces behind a sound manifest. */
#include "tests/common/fuzz.h"

#include <string.h>

#include "pipeline/artefact/checkpoint_folder.h"
#include "pipeline/artefact/checkpoint_reader.h"
#include "pipeline/base/file.h"

enum { ROWS_BYTES = 1 << 16 };

static void add(const char *latest, const char *header, size_t data_bytes) {
  struct text file = {0};
  const uint64_t length = strlen(header);
  char data[64] = {0};
  fuzz_require(text_format(&file, "%s\n", latest) == STATUS_OK &&
                   text_add_bytes(&file, &length, sizeof length) == STATUS_OK &&
                   text_add(&file, header) == STATUS_OK &&
                   text_add_bytes(&file, data, data_bytes) == STATUS_OK,
               "memory suffices");
  fuzz_seed(file.bytes, file.length);
  text_free(&file);
}

void fuzz_make_seeds(void) {
  add("20", "{}", 0);
  add("",
      "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
      "\"s\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[16,18]}}",
      18);
  add("-3",
      "{\"__metadata__\":{\"piece.w\":\"0/2\"},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}",
      16);
}

static void read_pointer(const struct text *line) {
  int64_t step = -1;
  fuzz_file("latest", line->bytes, line->length);
  if (checkpoint_folder_latest(fuzz_folder(), &step) == STATUS_OK)
    fuzz_require(step >= 0, "a step is not negative");
}

static void read_tensors(const struct checkpoint_reader *reader) {
  struct source_cache cache = {0};
  unsigned char rows[ROWS_BYTES];
  for (int64_t i = 0; i < reader->tensor_count; i++) {
    const struct safetensors_tensor *tensor = &reader->tensors[i];
    fuzz_require(checkpoint_reader_find(reader, tensor->name) == tensor, "a name is found");
    if (tensor->bytes > sizeof rows) continue;
    const int64_t count = tensor->dimensions ? tensor->shape[0] : 1;
    fuzz_require(checkpoint_reader_read(reader, &cache, tensor,
                                        (struct checkpoint_rows){.count = count},
                                        rows) == STATUS_OK,
                 "all rows can be read");
  }
  source_cache_free(&cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  struct fuzz_input input = {bytes, count};
  struct text line = {0};
  struct manifest manifest = {0};
  struct checkpoint_reader reader;
  fuzz_take_line(&line, &input);
  read_pointer(&line);
  text_free(&line);
  fuzz_file("tensors-00000.safetensors", input.bytes, input.count);
  fuzz_require(manifest_add_file(&manifest, fuzz_folder(), "tensors-00000.safetensors") ==
                   STATUS_OK,
               "a file can be listed");
  if (checkpoint_reader_take(&reader, fuzz_folder(), &manifest) == STATUS_OK) {
    read_tensors(&reader);
    checkpoint_reader_close(&reader);
  }
  manifest_free(&manifest);
  return 0;
}
