#include "stages/evaluate/rouge.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/subsequence.h"
#include "stages/evaluate/porter.h"

enum { SHORT_WORD = 3 }; /* is not stemmed */

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static enum status add_word(struct words *words, const char *bytes, size_t count) {
  char stem[PORTER_BYTES];
  if (count <= SHORT_WORD || count >= PORTER_BYTES) return words_add(words, bytes, count);
  memcpy(stem, bytes, count);
  return words_add(words, stem, porter_stem(stem, count));
}

static enum status read_words(struct rouge *rouge, struct words *words, const struct text *text) {
  text_clear(&rouge->lowered);
  words_clear(words);
  if (!text->length) return STATUS_OK;
  TRY(words_lower(&rouge->lowered, text->bytes, text->length));
  const char *bytes = rouge->lowered.bytes;
  for (size_t at = 0; at < rouge->lowered.length;) {
    size_t end = at;
    while (end < rouge->lowered.length && is_word(bytes[end])) end++;
    if (end > at) TRY(add_word(words, bytes + at, end - at));
    at = end > at ? end : at + 1;
  }
  return STATUS_OK;
}

static double f1(int64_t common, int64_t text, int64_t reference) {
  return text + reference > 0 ? 2 * (double)common / (double)(text + reference) : 0;
}

static enum status longest_common(int64_t *longest, const struct words *a, const struct words *b) {
  int64_t *row = calloc(b->count + 1, sizeof *row);
  CHECK(row, STATUS_ENVIRONMENT, "out of memory: %zu words", b->count);
  *longest = subsequence_longest(row, a->ids, a->count, b->ids, b->count);
  free(row);
  return STATUS_OK;
}

enum status rouge_score(double *scores, struct rouge *rouge, const struct text *text,
                        const struct text *reference) {
  const struct words *a = &rouge->text, *b = &rouge->reference;
  int64_t common;
  TRY(read_words(rouge, &rouge->text, text));
  TRY(read_words(rouge, &rouge->reference, reference));
  for (size_t n = 1; n <= 2; n++) {
    TRY(words_common(&common, a, b, n));
    scores[n - 1] = f1(common, words_grams(a, n), words_grams(b, n));
  }
  TRY(longest_common(&common, a, b));
  scores[ROUGE_L] = f1(common, (int64_t)a->count, (int64_t)b->count);
  return STATUS_OK;
}

void rouge_free(struct rouge *rouge) {
  words_free(&rouge->text);
  words_free(&rouge->reference);
  text_free(&rouge->lowered);
}
