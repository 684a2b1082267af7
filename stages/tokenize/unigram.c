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
  TRY(unigram_words_flush(&unigram->words, bytes + count));
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
  word_batch_add(&unigram->words.batch, bytes + *at, run);
  *at = end + 1;
  return unigram->words.batch.count < WORD_BATCH_FULL
             ? STATUS_OK
             : unigram_words_flush(&unigram->words, bytes + count);
}

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  struct unigram *unigram = tokenizer->state;
  unigram_words_begin(&unigram->words, ids);
  unigram->behind_space = true;
  TRY(tokens_reserve(ids, count / 4 + 16));
  for (size_t at = 0; at < count;) TRY(take_next(unigram, bytes, count, &at));
  return unigram_words_flush(&unigram->words, bytes + count);
}

/* Appends a piece, the symbol for a space as a space. */
static enum status add_piece(struct text *text, const char *bytes, size_t count) {
  for (size_t at = 0; at < count;) {
    const bool symbol = count - at >= SPACE_BYTES && !memcmp(bytes + at, space, SPACE_BYTES);
    TRY(text_add_bytes(text, symbol ? " " : bytes + at, 1));
    at += symbol ? SPACE_BYTES : 1;
  }
  return STATUS_OK;
}

/* As the library decodes: pieces until the first that gives text lose the space they begin with. */
static enum status decode(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                          size_t count) {
  const struct unigram *unigram = tokenizer->state;
  const struct unigram_model *model = &unigram->model;
  const size_t first = text->length;
  for (size_t i = 0; i < count; i++) {
    const struct unigram_piece *piece = &model->pieces[ids[i]];
    size_t skip = 0;
    if (piece->type == UNIGRAM_CONTROL) continue;
    if (piece->type == UNIGRAM_UNKNOWN) {
      TRY(text_add_bytes(text, model->unknown_text, model->unknown_text_bytes));
      continue;
    }
    if (text->length == first && piece->count >= SPACE_BYTES &&
        memcmp(piece->bytes, space, SPACE_BYTES) == 0)
      skip = SPACE_BYTES;
    TRY(add_piece(text, piece->bytes + skip, piece->count - skip));
  }
  return STATUS_OK;
}

static void close_unigram(void *state) {
  struct unigram *unigram = state;
  if (!unigram) return;
  unigram_model_free(&unigram->model);
  charsmap_close(&unigram->charsmap);
  unigram_words_close(&unigram->words);
  free(unigram);
}

static const struct tokenizer_methods methods = {encode, decode, close_unigram};

static enum status open_own(struct tokenizer *tokenizer, struct unigram_model *model) {
  struct unigram *unigram = calloc(1, sizeof *unigram);
  if (!unigram) unigram_model_free(model);
  CHECK(unigram, STATUS_ENVIRONMENT, "out of memory: a tokenizer");
  unigram->model = *model;
  tokenizer->methods = &methods;
  tokenizer->state = unigram;
  TRY(charsmap_open(&unigram->charsmap, model->charsmap, model->charsmap_bytes));
  return unigram_words_open(&unigram->words, model);
}

/* The library opens the model first: it says what is wrong with it, and knows the special ids. It
 * is kept only when our own path does not cover the model. */
enum status unigram_open(struct tokenizer *tokenizer) {
  struct unigram_model model;
  const char *kind = tokenizer->facts.kind;
  TRY(sentencepiece_open(tokenizer));
  tokenizer->facts.kind = kind;
  TRY(unigram_model_parse(&model, tokenizer->model.bytes, tokenizer->model.length));
  tokenizer->facts.fallback = unigram_model_uncovered(&model);
  if (tokenizer->facts.fallback) {
    unigram_model_free(&model);
    return STATUS_OK;
  }
  tokenizer->methods->close(tokenizer->state);
  tokenizer->methods = NULL;
  tokenizer->state = NULL;
  return open_own(tokenizer, &model);
}
