#include "stages/tokenize/unigram_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char space[] = UNIGRAM_SPACE;
enum { SPACE_BYTES = UNIGRAM_SPACE_BYTES };

static enum status build_trie(struct unigram_words *words, const struct unigram_model *model) {
  struct piece_trie_key *keys = calloc((size_t)model->piece_count, sizeof *keys);
  CHECK(keys, STATUS_ENVIRONMENT, "out of memory: a tokenizer's pieces");
  size_t count = 0;
  for (int32_t i = 0; i < model->piece_count; i++) {
    const struct unigram_piece *piece = &model->pieces[i];
    if (piece->type != UNIGRAM_NORMAL) continue;
    keys[count++] =
        (struct piece_trie_key){(const unsigned char *)piece->bytes, piece->count, i, piece->score};
  }
  const enum status status = piece_trie_build(&words->trie, keys, count);
  free(keys);
  TRY(status);
  return STATUS_OK;
}

enum status unigram_words_open(struct unigram_words *words, const struct unigram_model *model) {
  *words = (struct unigram_words){0};
  TRY(build_trie(words, model));
  words->viterbi = (struct viterbi){
      .trie = &words->trie, .unknown = model->unknown, .unknown_score = model->unknown_score};
  words->scores = malloc((size_t)model->piece_count * sizeof *words->scores);
  CHECK(words->scores, STATUS_ENVIRONMENT, "out of memory: scores of pieces");
  for (int32_t i = 0; i < model->piece_count; i++) {
    words->scores[i] = i == model->unknown ? model->unknown_score : model->pieces[i].score;
    words->worst = fmaxf(words->worst, fabsf(words->scores[i]) * 1.001F); /* rounding */
  }
  return word_cache_open(&words->cache);
}

void unigram_words_close(struct unigram_words *words) {
  piece_trie_free(&words->trie);
  viterbi_free(&words->viterbi);
  word_cache_close(&words->cache);
  text_free(&words->gathered);
  free(words->scores);
  *words = (struct unigram_words){0};
}

void unigram_words_begin(struct unigram_words *words, struct tokens *ids) {
  words->ids = ids;
  words->first = words->summed = ids->count;
  words->sum = 0;
  words->empty = 0;
  words->unknown = false;
  words->batch.count = 0;
}

/* Brings the sum up to date. Words that are remembered are added without it. */
static void add_up(struct unigram_words *words) {
  const int32_t *ids = words->ids->ids;
  float sum = words->sum;
  for (size_t i = words->summed; i < words->ids->count; i++)
    sum = (float)((double)words->scores[ids[i]] + sum);
  words->sum = sum;
  words->summed = words->ids->count;
}

/* Whether the present sum is above -limit: by an estimate, or else exactly. */
static inline bool is_above(struct unigram_words *words, float limit) {
  if ((float)(words->ids->count - words->first + 1) * words->worst < limit) return true;
  add_up(words);
  return -words->sum < limit;
}

/* Adds a piece to the document, where there is room and the sum is up to date; neighbouring unknown
 * characters become one token. */
static inline void add_piece(struct unigram_words *words, int32_t id) {
  const bool unknown = id == words->viterbi.unknown;
  words->sum = (float)((double)words->scores[id] + words->sum);
  if (!(unknown && words->unknown)) words->ids->ids[words->ids->count++] = id;
  words->unknown = unknown;
  words->summed = words->ids->count;
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
 * noted in words->pieces. */
static enum status add_segmented(struct unigram_words *words, const char *word, size_t count,
                                 struct viterbi_result *result) {
  add_up(words);
  TRY(viterbi_run(&words->viterbi, word, count, words->sum, result));
  TRY(tokens_reserve(words->ids, result->count));
  const struct viterbi_step *steps = words->viterbi.steps;
  turn_around(words->viterbi.steps, count);
  size_t at = (size_t)steps[0].length;
  for (size_t i = 0; i < result->count; i++) {
    add_piece(words, steps[at].id);
    if (i < WORD_LONG_PIECES) words->pieces[i] = steps[at].id;
    at += (size_t)steps[at].length;
  }
  return STATUS_OK;
}

/* Puts a word that is not there yet behind a space into words->gathered. */
static enum status gather(struct unigram_words *words, const char *word, size_t count) {
  if (word == words->gathered.bytes + SPACE_BYTES) return STATUS_OK;
  text_clear(&words->gathered);
  TRY(text_add_bytes(&words->gathered, space, SPACE_BYTES));
  return text_add_bytes(&words->gathered, word, count);
}

static bool has_unknown(const struct unigram_words *words, size_t pieces) {
  for (size_t i = 0; i < pieces; i++)
    if (words->pieces[i] == words->viterbi.unknown) return true;
  return false;
}

/* Segments a word and remembers the result, if it is one that holds for later. */
static enum status add_new(struct unigram_words *words, const char *word, size_t count) {
  struct viterbi_result result;
  add_up(words);
  const double before = words->sum;
  TRY(gather(words, word, count));
  TRY(add_segmented(words, words->gathered.bytes, words->gathered.length, &result));
  const bool holds = result.limit > -before && result.count <= WORD_LONG_PIECES;
  if (!holds || count > WORD_LONG_BYTES) return STATUS_OK;
  const struct word_pieces pieces = {
      .ids = words->pieces,
      .count = result.count,
      .limit = (float)(result.limit * (1 - 0x1p-20)), /* rounded towards safety */
      .beside = has_unknown(words, result.count)};
  const char *content = words->gathered.bytes + SPACE_BYTES;
  if (count > WORD_SHORT_BYTES) {
    word_cache_put_long(&words->cache, content, count, pieces);
    return STATUS_OK;
  }
  uint64_t key[2];
  word_cache_key(key, content, count, count);
  word_cache_put(&words->cache, key, pieces);
  return STATUS_OK;
}

/* A word whose pieces are known. */
static enum status add_pieces(struct unigram_words *words, const int32_t *pieces, size_t count) {
  TRY(tokens_reserve(words->ids, count));
  add_up(words);
  for (size_t i = 0; i < count; i++) add_piece(words, pieces[i]);
  return STATUS_OK;
}

static enum status add_longer(struct unigram_words *words, const char *word, size_t count) {
  const struct word_long *known =
      count <= WORD_LONG_BYTES ? word_cache_find_long(&words->cache, word, count) : NULL;
  if (!known || !is_above(words, known->limit)) return add_new(words, word, count);
  return add_pieces(words, known->ids, known->count);
}

/* Words of nothing but a space that turned out not to end the document. */
static enum status add_empty_words(struct unigram_words *words) {
  struct viterbi_result result;
  for (; words->empty; words->empty--) TRY(add_segmented(words, space, SPACE_BYTES, &result));
  return STATUS_OK;
}

static inline enum status add_short(struct unigram_words *words, const uint64_t key[2],
                                    const char *word, size_t count) {
  const struct word_short *known = word_cache_find(&words->cache, key);
  if (!known || !is_above(words, known->limit)) return add_new(words, word, count);
  if (known->beside)
    return add_pieces(words, word_cache_beside(&words->cache, known), known->count);
  if (words->ids->capacity - words->ids->count < WORD_SHORT_PIECES)
    TRY(tokens_reserve(words->ids, WORD_SHORT_PIECES));
  words->ids->count += word_short_ids(words->ids->ids + words->ids->count, known);
  words->unknown = false;
  return STATUS_OK;
}

enum status unigram_words_flush(struct unigram_words *words, const char *end) {
  struct word_batch *batch = &words->batch;
  const size_t found = batch->count;
  word_batch_seek(batch, &words->cache, end);
  words->batch.count = 0;
  if (found && words->empty) TRY(add_empty_words(words));
  for (size_t i = 0; i < found; i++) {
    if (batch->lengths[i] <= WORD_SHORT_BYTES)
      TRY(add_short(words, batch->keys[i], batch->words[i], batch->lengths[i]));
    else
      TRY(add_longer(words, batch->words[i], batch->lengths[i]));
  }
  return STATUS_OK;
}

enum status unigram_words_add(struct unigram_words *words, const char *word, size_t count) {
  uint64_t key[2];
  if (!count) {
    words->empty++;
    return STATUS_OK;
  }
  if (words->empty) TRY(add_empty_words(words));
  if (count > WORD_SHORT_BYTES) return add_longer(words, word, count);
  word_cache_key(key, word, count, count);
  return add_short(words, key, word, count);
}
