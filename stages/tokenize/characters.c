/* The characters of text8: space and the letters a to z. Everything else is brought to them by the
 * rules of the data set: capitals become small, digits are spelled out, what is left becomes a
 * space, and spaces run together. (Mahoney, "About the Test Data", 2006; ids with the special
 * tokens first, as in discrete diffusion's text8 configurations: CLS SEP BOS EOS MASK PAD RES UNK.)
 */
#include "stages/tokenize/tokenizer_kind.h"

enum { BOS = 2, EOS = 3, PAD = 5, UNK = 7, SPACE = 8, LETTERS, VOCABULARY = LETTERS + 26 };

static const char *const digits[] = {"zero", "one", "two",   "three", "four",
                                     "five", "six", "seven", "eight", "nine"};

/* A document being written: `space` when its next letter is to be preceded by one. */
struct writer {
  struct tokens *ids;
  bool space, begun;
};

static enum status add_letter(struct writer *writer, char letter) {
  const int32_t ids[] = {SPACE, LETTERS + (letter - 'a')};
  const bool space = writer->space && writer->begun;
  writer->space = false;
  writer->begun = true;
  return space ? tokens_add(writer->ids, ids, 2) : tokens_add(writer->ids, ids + 1, 1);
}

static enum status add_digit(struct writer *writer, int digit) {
  writer->space = true;
  for (const char *at = digits[digit]; *at; at++) TRY(add_letter(writer, *at));
  writer->space = true;
  return STATUS_OK;
}

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  (void)tokenizer;
  struct writer writer = {.ids = ids};
  for (size_t i = 0; i < count; i++) {
    const char byte = bytes[i];
    if (byte >= 'a' && byte <= 'z')
      TRY(add_letter(&writer, byte));
    else if (byte >= 'A' && byte <= 'Z')
      TRY(add_letter(&writer, (char)(byte + 32)));
    else if (byte >= '0' && byte <= '9')
      TRY(add_digit(&writer, byte - '0'));
    else
      writer.space = true;
  }
  return STATUS_OK;
}

static enum status decode(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                          size_t count) {
  (void)tokenizer;
  for (size_t i = 0; i < count; i++) {
    const char letter = ids[i] == SPACE ? ' ' : (char)('a' + ids[i] - LETTERS);
    if (ids[i] >= SPACE) TRY(text_add_bytes(text, &letter, 1));
  }
  return STATUS_OK;
}

static void close_none(void *state) {
  (void)state;
}

static const struct tokenizer_methods methods = {encode, decode, close_none};

enum status characters_open(struct tokenizer *tokenizer) {
  tokenizer->methods = &methods;
  tokenizer->rules = "text8 1: 8 special ids, space 8, a to z from 9";
  tokenizer->facts.reference = "the rules of text8";
  tokenizer->facts.vocabulary_size = VOCABULARY;
  tokenizer->facts.pad = PAD;
  tokenizer->facts.eos = EOS;
  tokenizer->facts.bos = BOS;
  tokenizer->facts.unk = UNK;
  tokenizer->facts.lossless = false;
  return STATUS_OK;
}
