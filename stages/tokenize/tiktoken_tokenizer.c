/* The families of .tiktoken files: how their texts are cut, how many ids they have, and which of
 * them no text gives; the first of these is the end of a document and fills up rows. */
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/bpe_tokenizer.h"
#include "stages/tokenize/tiktoken.h"
#include "stages/tokenize/tokenizer_kind.h"

struct family {
  const struct bpe_cut *cut;
  int32_t vocabulary_size, special_count;
  int32_t specials[5];
};

static enum status check_ranks(const struct tiktoken *file, const struct family *family) {
  CHECK(file->count <= family->vocabulary_size, STATUS_MISMATCH,
        "the file has ranks up to %d; a %s vocabulary has %d ids", file->count - 1,
        family->cut->name, family->vocabulary_size);
  return STATUS_OK;
}

static enum status copy_specials(struct bpe_vocabulary *vocabulary, const struct family *family) {
  vocabulary->specials = malloc(sizeof family->specials);
  CHECK(vocabulary->specials, STATUS_ENVIRONMENT, "out of memory: special tokens");
  memcpy(vocabulary->specials, family->specials, sizeof family->specials);
  vocabulary->special_count = family->special_count;
  return STATUS_OK;
}

static enum status open_family(struct tokenizer *tokenizer, const struct family *family) {
  struct tiktoken file;
  TRY(tiktoken_parse(&file, tokenizer->model.bytes, tokenizer->model.length));
  struct bpe_vocabulary vocabulary = {.cut = family->cut,
                                      .tokens = file.tokens,
                                      .count = file.count,
                                      .bytes = file.bytes,
                                      .vocabulary_size = family->vocabulary_size,
                                      .eos = family->specials[0],
                                      .pad = family->specials[0],
                                      .bos = TOKEN_NONE,
                                      .reference = "tiktoken encode_ordinary"};
  enum status status = check_ranks(&file, family);
  if (status == STATUS_OK) status = copy_specials(&vocabulary, family);
  if (status != STATUS_OK) bpe_vocabulary_free(&vocabulary);
  TRY(status);
  return bpe_tokenizer_open(tokenizer, &vocabulary);
}

enum status gpt2_open(struct tokenizer *tokenizer) {
  static const struct family family = {&bpe_cut_gpt2, 50257, 1, {50256}};
  return open_family(tokenizer, &family);
}

/* End of text; the prefix, middle and suffix of a text to be filled in; end of prompt. */
enum status cl100k_open(struct tokenizer *tokenizer) {
  static const struct family family = {
      &bpe_cut_cl100k, 100277, 5, {100257, 100258, 100259, 100260, 100276}};
  return open_family(tokenizer, &family);
}

/* End of text and end of prompt. */
enum status o200k_open(struct tokenizer *tokenizer) {
  static const struct family family = {&bpe_cut_o200k, 200019, 2, {199999, 200018}};
  return open_family(tokenizer, &family);
}
