/* Our own path for SentencePiece unigram models. Ids are equal to those of libsentencepiece for
 * every input (tests/property/unigram.c); models that it does not cover are left to the library.
 *
 * A document is a sequence of words, each with a space before it. No piece has a space inside, so
 * words are segmented on their own, and remembered; only the running sum of scores joins them
 * (unigram_viterbi.h).
 */
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/ascii_masks.h"
#include "stages/tokenize/charsmap.h"
#include "stages/tokenize/sentencepiece.h"
#include "stages/tokenize/tokenizer_kind.h"
#include "stages/tokenize/unigram.h"
#include "stages/tokenize/unigram_words.h"
#include "stages/tokenize/word_scan.h"

static const char space[] = UNIGRAM_SPACE;
enum { SPACE_BYTES = UNIGRAM_SPACE_BYTES };

struct unigram {
  struct unigram_model model;
  struct charsmap charsmap;
  struct unigram_words words;
  ascii_masks_function *masks;
  bool by_masks;        /* printable characters stay as they are, and blank ones become spaces */
  struct text gathered; /* a word in its normal form */
  bool behind_space;    /* the normalised text so far ends with a space that was written as one */
};

static enum status end_word(struct unigram *unigram) {
  TRY(unigram_words_add(&unigram->words, unigram->gathered.bytes, unigram->gathered.length));
  text_clear(&unigram->gathered);
  return STATUS_OK;
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
      TRY(text_add_bytes(&unigram->gathered, bytes + at, 1));
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
  text_clear(&unigram->gathered);
  do {
    const char *result =
        charsmap_next(&unigram->charsmap, bytes + *at, count - *at, &length, &result_count);
    TRY(take(unigram, result, result_count));
    *at += length;
  } while (*at < count && !(unigram->behind_space && !unigram->gathered.length));
  if (*at == count && unigram->gathered.length) return end_word(unigram);
  return STATUS_OK;
}

/* Between words, where the text is plain: takes the words in the first 64 bytes of `bytes`, but for
 * those that what follows might join with. Returns where to go on; 0: nothing was taken. */
static size_t take_window(struct unigram *unigram, const char *bytes, size_t count) {
  char padded[ASCII_MASKS_BYTES];
  struct ascii_masks masks;
  const bool ends = count < ASCII_MASKS_BYTES;
  if (ends) {
    memset(padded, ' ', sizeof padded);
    memcpy(padded, bytes, count);
  }
  unigram->masks(&masks, ends ? padded : bytes);
  const uint64_t other = ~(masks.printable | masks.blank);
  /* words that end before this place have a space behind them that stands alone */
  const size_t certain = other  ? (size_t)__builtin_ctzll(other)
                         : ends ? count + 2
                                : ASCII_MASKS_BYTES;
  if (certain < 2) return 0;
  const uint64_t below =
      certain > ASCII_MASKS_BYTES ? UINT64_MAX : ((uint64_t)1 << (certain - 1)) - 1;
  uint64_t starts = masks.printable & ~(masks.printable << 1);
  uint64_t stops = ~masks.printable & masks.printable << 1 & below;
  size_t at = (size_t)__builtin_ctzll(starts | 1ull << 63 | ~below);
  for (; stops; stops &= stops - 1, starts &= starts - 1) {
    const size_t start = (size_t)__builtin_ctzll(starts);
    at = (size_t)__builtin_ctzll(stops);
    word_batch_add(&unigram->words.batch, bytes + start, at - start);
  }
  return at < count ? at : count;
}

/* Between words: the next word, by the fast way where it is plain. */
static enum status take_next(struct unigram *unigram, const char *bytes, size_t count, size_t *at) {
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
  *at = end;
  return STATUS_OK;
}

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  struct unigram *unigram = tokenizer->state;
  struct unigram_words *words = &unigram->words;
  unigram_words_begin(words, ids);
  unigram->behind_space = true;
  TRY(tokens_reserve(ids, count / 4 + 16));
  for (size_t at = 0; at < count;) {
    const size_t taken = unigram->by_masks ? take_window(unigram, bytes + at, count - at) : 0;
    at += taken;
    if (!taken) TRY(take_next(unigram, bytes, count, &at));
    if (words->batch.count >= WORD_BATCH_FULL) TRY(unigram_words_flush(words, bytes + count));
  }
  return unigram_words_flush(words, bytes + count);
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
  text_free(&unigram->gathered);
  free(unigram);
}

static const struct tokenizer_methods methods = {encode, decode, close_unigram};

static bool blanks_are_spaces(const struct charsmap *map) {
  for (const char *at = "\t\n\r "; *at; at++)
    if (map->classes[(unsigned char)*at] != CHARSMAP_SPACE) return false;
  return true;
}

enum status unigram_open_model(struct tokenizer *tokenizer, struct unigram_model *model) {
  struct unigram *unigram = calloc(1, sizeof *unigram);
  if (!unigram) unigram_model_free(model);
  CHECK(unigram, STATUS_ENVIRONMENT, "out of memory: a tokenizer");
  unigram->model = *model;
  tokenizer->methods = &methods;
  tokenizer->state = unigram;
  TRY(charsmap_open(&unigram->charsmap, model->charsmap, model->charsmap_bytes));
  unigram->masks = ascii_masks_best();
  unigram->by_masks = unigram->charsmap.printable_plain && blanks_are_spaces(&unigram->charsmap);
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
  return unigram_open_model(tokenizer, &model);
}
