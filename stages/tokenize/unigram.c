/* Our own path for SentencePiece unigram models. Ids are equal to those of libsentencepiece for
 * every input (tests/property/unigram.c); models that it does not cover are left to the library.
 *
 * A document is a sequence of words, each with a space before it. No piece has a space inside, so
 * words are segmented on their own, and remembered; only the running sum of scores joins them
 * (unigram_viterbi.h).
 */
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/charsmap.h"
#include "stages/tokenize/sentencepiece.h"
#include "stages/tokenize/tokenizer_kind.h"
#include "stages/tokenize/unigram_words.h"
#include "stages/tokenize/word_scan.h"

static const char space[] = UNIGRAM_SPACE;
enum { SPACE_BYTES = UNIGRAM_SPACE_BYTES };

struct unigram {
  struct tokenizer library; /* decodes; owns its state, borrows the model's bytes */
  struct unigram_model model;
  struct charsmap charsmap;
  struct unigram_words words;
  bool behind_space; /* the normalised text so far ends with a space that was written as one */
};

static enum status begin_word(struct unigram *unigram) {
  text_clear(&unigram->words.gathered);
  return text_add_bytes(&unigram->words.gathered, space, SPACE_BYTES);
}

static enum status end_word(struct unigram *unigram) {
  const size_t count = unigram->words.gathered.length - SPACE_BYTES;
  TRY(unigram_words_add(&unigram->words, unigram->words.gathered.bytes + SPACE_BYTES, count));
  return begin_word(unigram);
}

/* Takes a piece of normalised text: the normal form of one prefix of the input. */
static enum status take(struct unigram *unigram, const char *bytes, size_t count) {
  size_t at = 0;
  while (unigram->behind_space && at < count && bytes[at] == ' ') at++;
  if (at == count) return STATUS_OK;
  unigram->behind_space = bytes[count - 1] == ' ';
  for (; at < count; at++) {
    const bool symbol = count - at >= SPACE_BYTES && !memcmp(bytes + at, space, SPACE_BYTES);
    if (symbol) at += SPACE_BYTES - 1;
    if (symbol || bytes[at] == ' ')
      TRY(end_word(unigram));
    else
      TRY(text_add_bytes(&unigram->words.gathered, bytes + at, 1));
  }
  return STATUS_OK;
}

/* Whether what follows byte `at` cannot join with it: the end, or another ASCII byte. */
static inline bool stands_alone(const char *bytes, size_t at, size_t count) {
  return at + 1 >= count || (unsigned char)bytes[at + 1] < 0x80;
}

/* Goes on, prefix by prefix, until a space was written; returns the place behind it. */
static enum status take_slowly(struct unigram *unigram, const char *bytes, size_t count,
                               size_t *at) {
  size_t length, result_count;
  TRY(unigram_words_flush(&unigram->words));
  TRY(begin_word(unigram));
  do {
    const char *result =
        charsmap_next(&unigram->charsmap, bytes + *at, count - *at, &length, &result_count);
    TRY(take(unigram, result, result_count));
    *at += length;
  } while (*at < count &&
           !(unigram->behind_space && unigram->words.gathered.length == SPACE_BYTES));
  if (*at == count && unigram->words.gathered.length > SPACE_BYTES) return end_word(unigram);
  return STATUS_OK;
}

/* Between words: everything up to the next space, by the fast way where the text is plain. */
static inline enum status take_next(struct unigram *unigram, const char *bytes, size_t count,
                                    size_t *at) {
  const uint8_t *classes = unigram->charsmap.classes;
  if (classes[(unsigned char)bytes[*at]] == CHARSMAP_SPACE && stands_alone(bytes, *at, count)) {
    ++*at;
    return STATUS_OK;
  }
  const size_t run = word_scan_printable(bytes + *at, count - *at), end = *at + run;
  const bool whole = end == count || (classes[(unsigned char)bytes[end]] == CHARSMAP_SPACE &&
                                      stands_alone(bytes, end, count));
  if (!run || !whole || !unigram->charsmap.printable_plain)
    return take_slowly(unigram, bytes, count, at);
  word_batch_add(&unigram->words.batch, &unigram->words.cache, bytes + *at, run, count - *at);
  *at = end + 1;
  return unigram->words.batch.count < WORD_BATCH_WORDS ? STATUS_OK
                                                       : unigram_words_flush(&unigram->words);
}

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  struct unigram *unigram = tokenizer->state;
  unigram_words_begin(&unigram->words, ids);
  unigram->behind_space = true;
  TRY(tokens_reserve(ids, count / 4 + 16));
  for (size_t at = 0; at < count;) TRY(take_next(unigram, bytes, count, &at));
  return unigram_words_flush(&unigram->words);
}

static enum status decode(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                          size_t count) {
  const struct unigram *unigram = tokenizer->state;
  return unigram->library.methods->decode(&unigram->library, text, ids, count);
}

static void close_unigram(void *state) {
  struct unigram *unigram = state;
  if (!unigram) return;
  if (unigram->library.methods) unigram->library.methods->close(unigram->library.state);
  unigram_model_free(&unigram->model);
  charsmap_close(&unigram->charsmap);
  unigram_words_close(&unigram->words);
  free(unigram);
}

static const struct tokenizer_methods methods = {encode, decode, close_unigram};

/* The library's tokenizer as it is. */
static void hand_over(struct tokenizer *tokenizer, struct unigram *unigram) {
  tokenizer->methods = unigram->library.methods;
  tokenizer->state = unigram->library.state;
  unigram->library.methods = NULL;
  close_unigram(unigram);
}

enum status unigram_open(struct tokenizer *tokenizer) {
  struct unigram *unigram = calloc(1, sizeof *unigram);
  CHECK(unigram, STATUS_ENVIRONMENT, "out of memory: a tokenizer");
  tokenizer->methods = &methods;
  tokenizer->state = unigram;
  unigram->library.model = tokenizer->model;
  TRY(sentencepiece_open(&unigram->library));
  const char *kind = tokenizer->facts.kind;
  tokenizer->facts = unigram->library.facts;
  tokenizer->facts.kind = kind;
  tokenizer->rules = unigram->library.rules;
  TRY(unigram_model_parse(&unigram->model, tokenizer->model.bytes, tokenizer->model.length));
  tokenizer->facts.fallback = unigram_model_uncovered(&unigram->model);
  if (tokenizer->facts.fallback) {
    hand_over(tokenizer, unigram);
    return STATUS_OK;
  }
  TRY(charsmap_open(&unigram->charsmap, unigram->model.charsmap, unigram->model.charsmap_bytes));
  return unigram_words_open(&unigram->words, &unigram->model);
}
