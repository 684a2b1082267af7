/* Our own path for SentencePiece unigram models. Ids are equal to those of libsentencepiece for
 * every input (tests/property/unigram.c); models that it does not cover are left to the library.
 *
 * A document is a sequence of words, each with a space before it. No piece has a space inside, so
 * words are segmented on their own, and remembered; only the running sum of scores joins them
 * (unigram_viterbi.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/charsmap.h"
#include "stages/tokenize/sentencepiece.h"
#include "stages/tokenize/tokenizer_kind.h"
#include "stages/tokenize/unigram_model.h"
#include "stages/tokenize/unigram_viterbi.h"
#include "stages/tokenize/word_batch.h"
#include "stages/tokenize/word_cache.h"
#include "stages/tokenize/word_scan.h"

static const char space[] = "\xe2\x96\x81"; /* U+2581 */
enum { SPACE_BYTES = 3 };

struct unigram {
  struct tokenizer library; /* decodes; owns its state, borrows the model's bytes */
  struct unigram_model model;
  struct charsmap charsmap;
  struct piece_trie trie;
  struct viterbi viterbi;
  struct word_cache cache;
  float *scores; /* [pieces], owned; as segmentation uses them */
  float worst;   /* the largest magnitude among them */
  struct word_batch batch;
  int32_t pieces[WORD_LONG_PIECES]; /* of the word segmented last */
  struct text word;                 /* the word being gathered, the space before it included */
  /* of the present document */
  struct tokens *ids; /* borrowed */
  size_t first;       /* place of its first id */
  size_t summed;      /* ids before this place are in `sum` */
  float sum;          /* of the scores of all pieces, as the library rounds it */
  size_t empty;       /* words of nothing but a space that may turn out to end the document */
  bool behind_space;  /* the normalised text so far ends with a space that was written as one */
  bool unknown;       /* the last piece was the unknown one */
};

/* Brings the sum up to date. Words that are remembered are added without it. */
static void add_up(struct unigram *unigram) {
  const int32_t *ids = unigram->ids->ids;
  float sum = unigram->sum;
  for (size_t i = unigram->summed; i < unigram->ids->count; i++)
    sum = (float)((double)unigram->scores[ids[i]] + sum);
  unigram->sum = sum;
  unigram->summed = unigram->ids->count;
}

/* Whether the present sum is above -limit: by an estimate, or else exactly. */
static inline bool is_above(struct unigram *unigram, float limit) {
  if ((float)(unigram->ids->count - unigram->first + 1) * unigram->worst < limit) return true;
  add_up(unigram);
  return -unigram->sum < limit;
}

/* Adds a piece to the document, where there is room and the sum is up to date; neighbouring unknown
 * characters become one token. */
static inline void add_piece(struct unigram *unigram, int32_t id) {
  const bool unknown = id == unigram->model.unknown;
  unigram->sum = (float)((double)unigram->scores[id] + unigram->sum);
  if (!(unknown && unigram->unknown)) unigram->ids->ids[unigram->ids->count++] = id;
  unigram->unknown = unknown;
  unigram->summed = unigram->ids->count;
}

/* Turns the chain of ends around, in place: length becomes the way forward. */
static void turn_around(struct viterbi_step *steps, size_t end) {
  int32_t next = 0;
  while (end > 0) {
    const int32_t length = steps[end].length;
    steps[end].length = next;
    next = length;
    end -= (size_t)length;
  }
  steps[0].length = next;
}

/* Segments a word, with its space before it, and adds its pieces. The first WORD_LONG_PIECES are
 * noted in unigram->pieces. */
static enum status add_segmented(struct unigram *unigram, const char *word, size_t count,
                                 struct viterbi_result *result) {
  add_up(unigram);
  TRY(viterbi_run(&unigram->viterbi, word, count, unigram->sum, result));
  TRY(tokens_reserve(unigram->ids, result->count));
  const struct viterbi_step *steps = unigram->viterbi.steps;
  turn_around(unigram->viterbi.steps, count);
  size_t at = (size_t)steps[0].length;
  for (size_t i = 0; i < result->count; i++) {
    add_piece(unigram, steps[at].id);
    if (i < WORD_LONG_PIECES) unigram->pieces[i] = steps[at].id;
    at += (size_t)steps[at].length;
  }
  return STATUS_OK;
}

/* Puts a word that is not there yet behind a space into unigram->word. */
static enum status gather(struct unigram *unigram, const char *word, size_t count) {
  if (word == unigram->word.bytes + SPACE_BYTES) return STATUS_OK;
  text_clear(&unigram->word);
  TRY(text_add_bytes(&unigram->word, space, SPACE_BYTES));
  return text_add_bytes(&unigram->word, word, count);
}

static bool has_unknown(const struct unigram *unigram, size_t pieces) {
  for (size_t i = 0; i < pieces; i++)
    if (unigram->pieces[i] == unigram->model.unknown) return true;
  return false;
}

/* Segments a word and remembers the result, if it is one that holds for later. */
static enum status add_new(struct unigram *unigram, const char *word, size_t count) {
  struct viterbi_result result;
  add_up(unigram);
  const double before = unigram->sum;
  TRY(gather(unigram, word, count));
  TRY(add_segmented(unigram, unigram->word.bytes, unigram->word.length, &result));
  const bool holds = result.limit > -before && result.count <= WORD_LONG_PIECES;
  if (!holds || count > WORD_LONG_BYTES) return STATUS_OK;
  const struct word_pieces pieces = {unigram->pieces, result.count,
                                     (float)(result.limit * (1 - 0x1p-20))};
  const char *content = unigram->word.bytes + SPACE_BYTES;
  if (count > WORD_SHORT_BYTES || result.count > WORD_SHORT_PIECES ||
      has_unknown(unigram, result.count)) {
    word_cache_put_long(&unigram->cache, content, count, pieces);
    return STATUS_OK;
  }
  uint64_t key[2];
  word_cache_key(key, content, count, count);
  word_cache_put(&unigram->cache, key, pieces);
  return STATUS_OK;
}

/* A word that is not among the short ones that are remembered. */
static enum status add_longer(struct unigram *unigram, const char *word, size_t count) {
  const struct word_long *known =
      count <= WORD_LONG_BYTES ? word_cache_find_long(&unigram->cache, word, count) : NULL;
  if (!known || !is_above(unigram, known->limit)) return add_new(unigram, word, count);
  TRY(tokens_reserve(unigram->ids, known->count));
  add_up(unigram);
  for (uint32_t i = 0; i < known->count; i++) add_piece(unigram, known->ids[i]);
  return STATUS_OK;
}

/* Words of nothing but a space that turned out not to end the document. */
static enum status add_empty_words(struct unigram *unigram) {
  struct viterbi_result result;
  for (; unigram->empty; unigram->empty--) TRY(add_segmented(unigram, space, SPACE_BYTES, &result));
  return STATUS_OK;
}

static inline enum status add_short(struct unigram *unigram, const uint64_t key[2],
                                    const char *word, size_t count) {
  const struct word_short *known = word_cache_find(&unigram->cache, key);
  if (!known || !is_above(unigram, known->limit)) return add_longer(unigram, word, count);
  if (unigram->ids->capacity - unigram->ids->count < WORD_SHORT_PIECES)
    TRY(tokens_reserve(unigram->ids, WORD_SHORT_PIECES));
  unigram->ids->count += word_short_ids(unigram->ids->ids + unigram->ids->count, known);
  unigram->unknown = false;
  return STATUS_OK;
}

/* Adds the words that were found but not yet looked up. */
static enum status add_batch(struct unigram *unigram) {
  const struct word_batch *batch = &unigram->batch;
  const size_t words = batch->count;
  unigram->batch.count = 0;
  if (words && unigram->empty) TRY(add_empty_words(unigram));
  for (size_t i = 0; i < words; i++) {
    if (batch->lengths[i] <= WORD_SHORT_BYTES)
      TRY(add_short(unigram, batch->keys[i], batch->words[i], batch->lengths[i]));
    else
      TRY(add_longer(unigram, batch->words[i], batch->lengths[i]));
  }
  return STATUS_OK;
}

/* Ends a word that was gathered, when no batch is waiting. */
static enum status add_word(struct unigram *unigram, const char *word, size_t count) {
  uint64_t key[2];
  if (!count) {
    unigram->empty++;
    return STATUS_OK;
  }
  if (unigram->empty) TRY(add_empty_words(unigram));
  if (count > WORD_SHORT_BYTES) return add_longer(unigram, word, count);
  word_cache_key(key, word, count, count);
  return add_short(unigram, key, word, count);
}

static enum status begin_word(struct unigram *unigram) {
  text_clear(&unigram->word);
  return text_add_bytes(&unigram->word, space, SPACE_BYTES);
}

static enum status end_word(struct unigram *unigram) {
  const size_t count = unigram->word.length - SPACE_BYTES;
  TRY(add_word(unigram, unigram->word.bytes + SPACE_BYTES, count));
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
      TRY(text_add_bytes(&unigram->word, bytes + at, 1));
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
  TRY(add_batch(unigram));
  TRY(begin_word(unigram));
  do {
    const char *result =
        charsmap_next(&unigram->charsmap, bytes + *at, count - *at, &length, &result_count);
    TRY(take(unigram, result, result_count));
    *at += length;
  } while (*at < count && !(unigram->behind_space && unigram->word.length == SPACE_BYTES));
  if (*at == count && unigram->word.length > SPACE_BYTES) return end_word(unigram);
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
  word_batch_add(&unigram->batch, &unigram->cache, bytes + *at, run, count - *at);
  *at = end + 1;
  return unigram->batch.count < WORD_BATCH_WORDS ? STATUS_OK : add_batch(unigram);
}

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  struct unigram *unigram = tokenizer->state;
  unigram->ids = ids;
  unigram->first = unigram->summed = ids->count;
  unigram->sum = 0;
  unigram->empty = 0;
  unigram->batch.count = 0;
  unigram->behind_space = true;
  unigram->unknown = false;
  TRY(tokens_reserve(ids, count / 4 + 16));
  for (size_t at = 0; at < count;) TRY(take_next(unigram, bytes, count, &at));
  return add_batch(unigram);
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
  piece_trie_free(&unigram->trie);
  viterbi_free(&unigram->viterbi);
  word_cache_close(&unigram->cache);
  text_free(&unigram->word);
  free(unigram->scores);
  free(unigram);
}

static const struct tokenizer_methods methods = {encode, decode, close_unigram};

static enum status build_trie(struct unigram *unigram) {
  const struct unigram_model *model = &unigram->model;
  struct piece_trie_key *keys = calloc((size_t)model->piece_count, sizeof *keys);
  CHECK(keys, STATUS_ENVIRONMENT, "out of memory: a tokenizer's pieces");
  size_t count = 0;
  for (int32_t i = 0; i < model->piece_count; i++) {
    const struct unigram_piece *piece = &model->pieces[i];
    if (piece->type != UNIGRAM_NORMAL) continue;
    keys[count++] =
        (struct piece_trie_key){(const unsigned char *)piece->bytes, piece->count, i, piece->score};
  }
  const enum status status = piece_trie_build(&unigram->trie, keys, count);
  free(keys);
  TRY(status);
  return STATUS_OK;
}

static enum status open_tables(struct unigram *unigram) {
  const struct unigram_model *model = &unigram->model;
  TRY(charsmap_open(&unigram->charsmap, model->charsmap, model->charsmap_bytes));
  TRY(build_trie(unigram));
  unigram->viterbi = (struct viterbi){
      .trie = &unigram->trie, .unknown = model->unknown, .unknown_score = model->unknown_score};
  unigram->scores = malloc((size_t)model->piece_count * sizeof *unigram->scores);
  CHECK(unigram->scores, STATUS_ENVIRONMENT, "out of memory: scores of pieces");
  for (int32_t i = 0; i < model->piece_count; i++) {
    unigram->scores[i] = i == model->unknown ? model->unknown_score : model->pieces[i].score;
    unigram->worst = fmaxf(unigram->worst, fabsf(unigram->scores[i]) * 1.001F); /* rounding */
  }
  return word_cache_open(&unigram->cache);
}

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
  if (tokenizer->facts.fallback)
    hand_over(tokenizer, unigram);
  else
    TRY(open_tables(unigram));
  return STATUS_OK;
}
