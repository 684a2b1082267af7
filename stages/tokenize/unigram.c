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
#include "stages/tokenize/unigram_model.h"
#include "stages/tokenize/unigram_viterbi.h"
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
  struct text word; /* the word being gathered, the space before it included */
  /* of the present document */
  struct tokens *ids; /* borrowed */
  float sum;          /* of the scores of all pieces so far */
  size_t empty;       /* words of nothing but a space that may turn out to end the document */
  bool behind_space;  /* the normalised text so far ends with a space that was written as one */
  bool unknown;       /* the last piece was the unknown one */
};

/* Adds pieces to the document; neighbouring unknown characters become one token. */
static void add_piece(struct unigram *unigram, int32_t id, float score) {
  const bool unknown = id == unigram->model.unknown;
  unigram->sum = (float)((double)score + unigram->sum);
  if (!(unknown && unigram->unknown)) unigram->ids->ids[unigram->ids->count++] = id;
  unigram->unknown = unknown;
}

/* The pieces of the last run, in order, appended to the document. */
static void add_run(struct unigram *unigram, size_t bytes, size_t pieces) {
  struct viterbi_step *steps = unigram->viterbi.steps;
  size_t ends = bytes;
  /* turn the chain of ends around, in place: length becomes the way forward */
  for (int32_t next = 0; ends > 0;) {
    const int32_t length = steps[ends].length;
    steps[ends].length = next;
    next = length;
    ends -= (size_t)length;
    if (ends == 0) steps[0].length = next;
  }
  for (size_t at = (size_t)steps[0].length; pieces > 0; at += (size_t)steps[at].length, pieces--)
    add_piece(unigram, steps[at].id, unigram_model_score(&unigram->model, steps[at].id));
}

/* Segments the word in unigram->word and adds its pieces. */
static enum status add_segmented(struct unigram *unigram, struct viterbi_result *result) {
  TRY(viterbi_run(&unigram->viterbi, unigram->word.bytes, unigram->word.length, unigram->sum,
                  result));
  TRY(tokens_reserve(unigram->ids, result->count));
  add_run(unigram, unigram->word.length, result->count);
  return STATUS_OK;
}

/* Puts a word that is not there yet behind a space into unigram->word. */
static enum status gather(struct unigram *unigram, const char *word, size_t count) {
  if (count && word == unigram->word.bytes + SPACE_BYTES) return STATUS_OK;
  text_clear(&unigram->word);
  TRY(text_add_bytes(&unigram->word, space, SPACE_BYTES));
  return text_add_bytes(&unigram->word, word, count);
}

/* Segments a word and keeps the result in its slot, if it is one that holds for later. */
static enum status add_new(struct unigram *unigram, const char *word, size_t count,
                           struct word_entry entry) {
  struct viterbi_result result;
  const double before = unigram->sum;
  const size_t first = unigram->ids->count;
  TRY(gather(unigram, word, count));
  TRY(add_segmented(unigram, &result));
  const size_t added = unigram->ids->count - first;
  if (entry.found || added != result.count || added > entry.room || result.limit <= -before)
    return STATUS_OK;
  for (size_t i = 0; i < added; i++) {
    entry.ids[i] = unigram->ids->ids[first + i];
    entry.scores[i] = unigram_model_score(&unigram->model, entry.ids[i]);
  }
  *entry.limit = (float)(result.limit * (1 - 0x1p-20)); /* rounded towards safety */
  *entry.count = (uint32_t)added;
  return STATUS_OK;
}

static enum status add_known(struct unigram *unigram, const struct word_entry *entry) {
  TRY(tokens_reserve(unigram->ids, *entry->count));
  for (uint32_t i = 0; i < *entry->count; i++) add_piece(unigram, entry->ids[i], entry->scores[i]);
  return STATUS_OK;
}

static enum status add_short(struct unigram *unigram, const char *word, size_t count,
                             size_t readable) {
  uint64_t key[2];
  word_short_key(key, word, count, readable);
  struct word_short *slot = word_cache_short(&unigram->cache, key);
  const bool found = slot->key[0] == key[0] && slot->key[1] == key[1] && slot->count;
  const struct word_entry entry = {&slot->limit, &slot->count,      slot->ids,
                                   slot->scores, WORD_SHORT_PIECES, found};
  if (found && -unigram->sum < slot->limit) return add_known(unigram, &entry);
  if (!found) {
    memcpy(slot->key, key, sizeof key);
    slot->count = 0;
  }
  return add_new(unigram, word, count, entry);
}

static enum status add_longer(struct unigram *unigram, const char *word, size_t count) {
  struct viterbi_result result;
  if (count > WORD_LONG_BYTES) {
    TRY(gather(unigram, word, count));
    return add_segmented(unigram, &result);
  }
  const struct word_entry entry = word_cache_long(&unigram->cache, word, count);
  if (entry.found && -unigram->sum < *entry.limit) return add_known(unigram, &entry);
  return add_new(unigram, word, count, entry);
}

/* Words of nothing but a space that turned out not to end the document. */
static enum status add_empty_words(struct unigram *unigram) {
  struct viterbi_result result;
  for (; unigram->empty; unigram->empty--) {
    TRY(viterbi_run(&unigram->viterbi, space, SPACE_BYTES, unigram->sum, &result));
    TRY(tokens_reserve(unigram->ids, result.count));
    add_run(unigram, SPACE_BYTES, result.count);
  }
  return STATUS_OK;
}

/* Ends a word. `readable` bytes may be read from it on. */
static inline enum status add_word(struct unigram *unigram, const char *word, size_t count,
                                   size_t readable) {
  if (!count) {
    unigram->empty++;
    return STATUS_OK;
  }
  if (unigram->empty) TRY(add_empty_words(unigram));
  if (count <= WORD_SHORT_BYTES) return add_short(unigram, word, count, readable);
  return add_longer(unigram, word, count);
}

static enum status begin_word(struct unigram *unigram) {
  text_clear(&unigram->word);
  return text_add_bytes(&unigram->word, space, SPACE_BYTES);
}

static enum status end_word(struct unigram *unigram) {
  const size_t count = unigram->word.length - SPACE_BYTES;
  TRY(add_word(unigram, unigram->word.bytes + SPACE_BYTES, count, count));
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
  TRY(add_word(unigram, bytes + *at, run, count - *at));
  *at = end + 1;
  return STATUS_OK;
}

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  struct unigram *unigram = tokenizer->state;
  unigram->ids = ids;
  unigram->sum = 0;
  unigram->empty = 0;
  unigram->behind_space = true;
  unigram->unknown = false;
  TRY(tokens_reserve(ids, count / 4 + 16));
  for (size_t at = 0; at < count;) TRY(take_next(unigram, bytes, count, &at));
  return STATUS_OK;
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
