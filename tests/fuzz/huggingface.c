/* tokenizer.json: what opens obeys the laws of tokenizers. */
#include "tests/common/fuzz_tokenizer.h"
#include "tests/common/tokenizer_file.h"

void fuzz_make_seeds(void) {
  static const char byte_level[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}";
  for (int kind = 0; kind < 3; kind++) {
    struct text file = {0};
    const enum status status = kind == 2 ? tokenizer_file_bpe(&file, byte_level, true)
                                         : tokenizer_file_unigram(&file, kind == 1);
    fuzz_require(status == STATUS_OK &&
                     text_add(&file, "\n\nhello the <extra_id_3>wo\xff 12") == STATUS_OK,
                 "memory suffices");
    fuzz_seed(file.bytes, file.length);
    text_free(&file);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  fuzz_tokenizer("huggingface", bytes, count);
  return 0;
}
