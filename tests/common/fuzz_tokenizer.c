#include "tests/common/fuzz_tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "stages/tokenize/tokenizer.h"

static const uint8_t *find_text(const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i + 1 < count; i++)
    if (bytes[i] == '\n' && bytes[i + 1] == '\n') return bytes + i + 2;
  return bytes + count;
}

static void check(struct tokenizer *tokenizer, const char *text, size_t count) {
  struct tokens ids = {0};
  struct text back = {0};
  const struct tokenizer_facts *facts = tokenizer_facts_of(tokenizer);
  fuzz_require(tokenizer_encode(tokenizer, &ids, text, count) == STATUS_OK, "any text has ids");
  for (size_t i = 0; i < ids.count; i++)
    fuzz_require(ids.ids[i] >= 0 && ids.ids[i] < facts->vocabulary_size,
                 "ids are inside the vocabulary");
  fuzz_require(tokenizer_decode(tokenizer, &back, ids.ids, ids.count) == STATUS_OK,
               "ids have a text");
  fuzz_require(!facts->lossless ||
                   (back.length == count && (!count || !memcmp(back.bytes, text, count))),
               "ids give the text back");
  tokens_free(&ids);
  text_free(&back);
}

void fuzz_tokenizer(const char *kind, const uint8_t *bytes, size_t count) {
  char spec[PATH_MAX];
  struct tokenizer *tokenizer;
  const uint8_t *text = find_text(bytes, count);
  const char *path = fuzz_file("x.model", bytes, (size_t)(text - bytes));
  snprintf(spec, sizeof spec, "%s:%s", kind, path);
  if (tokenizer_open(&tokenizer, spec) != STATUS_OK) return;
  check(tokenizer, (const char *)text, count - (size_t)(text - bytes));
  tokenizer_close(tokenizer);
}
