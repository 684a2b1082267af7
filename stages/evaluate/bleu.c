#include "stages/evaluate/bleu.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static enum status read_words(struct bleu *bleu, struct words *words, const struct text *text) {
  text_clear(&bleu->lowered);
  words_clear(words);
  if (!text->length) return STATUS_OK;
  TRY(words_lower(&bleu->lowered, text->bytes, text->length));
  TRY(bleu_tokenize(&bleu->tokens, bleu->lowered.bytes, bleu->lowered.length));
  const char *at = bleu->tokens.bytes, *end = at + bleu->tokens.length;
  while (at < end) {
    const char *space = memchr(at, ' ', (size_t)(end - at));
    const char *stop = space ? space : end;
    TRY(words_add(words, at, (size_t)(stop - at)));
    at = stop + 1;
  }
  return STATUS_OK;
}

enum status bleu_add(struct bleu *bleu, const struct text *text, const struct text *reference) {
  TRY(read_words(bleu, &bleu->system, text));
  TRY(read_words(bleu, &bleu->reference, reference));
  for (size_t n = 1; n <= BLEU_ORDER; n++) {
    int64_t common;
    TRY(words_common(&common, &bleu->system, &bleu->reference, n));
    bleu->correct[n - 1] += common;
    bleu->total[n - 1] += words_grams(&bleu->system, n);
  }
  bleu->length += (int64_t)bleu->system.count;
  bleu->reference_length += (int64_t)bleu->reference.count;
  return STATUS_OK;
}

static double brevity(const struct bleu *bleu) {
  if (bleu->length >= bleu->reference_length) return 1;
  return bleu->length > 0 ? exp(1 - (double)bleu->reference_length / (double)bleu->length) : 0;
}

double bleu_score(const struct bleu *bleu) {
  double logs = 0, smooth = 1;
  int order = 0;
  bool any = false;
  for (int n = 0; n < BLEU_ORDER; n++) any = any || bleu->correct[n] > 0;
  if (!any) return 0;
  for (; order < BLEU_ORDER && bleu->total[order] > 0; order++) {
    const double total = (double)bleu->total[order], correct = (double)bleu->correct[order];
    if (correct <= 0) smooth *= 2;
    logs += log(100 * (correct > 0 ? correct : 1 / smooth) / total);
  }
  return brevity(bleu) * exp(logs / order);
}

void bleu_free(struct bleu *bleu) {
  words_free(&bleu->system);
  words_free(&bleu->reference);
  text_free(&bleu->lowered);
  text_free(&bleu->tokens);
}
