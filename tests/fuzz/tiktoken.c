/* .tiktoken files: a vocabulary that opens gives every text back. The input is a file, an empty
 * line, and a text. */
#include "tests/common/fuzz_tokenizer.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void add_token(struct text *file, const char *bytes, size_t count, int rank) {
  char out[16] = {0};
  unsigned value = 0;
  for (size_t i = 0; i < 3; i++)
    value = value << 8 | (i < count ? (unsigned)(unsigned char)bytes[i] : 0);
  for (size_t i = 0; i < 4; i++) out[i] = i <= count ? digits[value >> (18 - 6 * i) & 63] : '=';
  fuzz_require(text_format(file, "%s %d\n", out, rank) == STATUS_OK, "memory suffices");
}

/* All bytes, and a token of 60,000: a trie as deep as it is long is more than the stack holds. */
static void add_long(void) {
  struct text file = {0};
  for (int byte = 0; byte < 256; byte++) {
    const char c = (char)byte;
    add_token(&file, &c, 1, byte);
  }
  for (int i = 0; i < 20000; i++)
    fuzz_require(text_add(&file, "AAAA") == STATUS_OK, "memory suffices");
  fuzz_require(text_add(&file, " 256\n\nx") == STATUS_OK, "memory suffices");
  fuzz_seed(file.bytes, file.length);
  text_free(&file);
}

void fuzz_make_seeds(void) {
  struct text file = {0};
  for (int byte = 0; byte < 256; byte++) {
    const char c = (char)byte;
    add_token(&file, &c, 1, byte);
  }
  add_token(&file, "th", 2, 256);
  add_token(&file, "the", 3, 257);
  add_token(&file, " t", 2, 258);
  fuzz_require(text_add(&file, "\nthe then 12 th\xff\n\n  it's") == STATUS_OK, "memory suffices");
  fuzz_seed(file.bytes, file.length);
  text_free(&file);
  add_long();
  fuzz_seed_text("IQ== 0\nIg== 1\r\n\nx");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  static const char *const kinds[] = {"gpt2", "cl100k", "o200k"};
  fuzz_tokenizer(kinds[count % 3], bytes, count);
  return 0;
}
