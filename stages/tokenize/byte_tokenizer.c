/* The byte tokenizer: id = byte, and two special tokens. */
#include "stages/tokenize/tokenizer_kind.h"

enum { BYTES = 256, PAD = BYTES, EOS, VOCABULARY };

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  (void)tokenizer;
  TRY(tokens_reserve(ids, count));
  for (size_t i = 0; i < count; i++) ids->ids[ids->count + i] = (unsigned char)bytes[i];
  ids->count += count;
  return STATUS_OK;
}

static enum status decode(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                          size_t count) {
  (void)tokenizer;
  for (size_t i = 0; i < count; i++) {
    const char byte = (char)ids[i];
    if (ids[i] < BYTES) TRY(text_add_bytes(text, &byte, 1));
  }
  return STATUS_OK;
}

static void close_none(void *state) {
  (void)state;
}

static const struct tokenizer_methods methods = {encode, decode, close_none};

enum status byte_open(struct tokenizer *tokenizer) {
  tokenizer->methods = &methods;
  tokenizer->rules = "byte 1: 256 bytes, pad 256, eos 257";
  tokenizer->facts.reference = "the bytes themselves";
  tokenizer->facts.vocabulary_size = VOCABULARY;
  tokenizer->facts.pad = PAD;
  tokenizer->facts.eos = EOS;
  tokenizer->facts.unk = tokenizer->facts.bos = TOKEN_NONE;
  tokenizer->facts.lossless = true;
  return STATUS_OK;
}
