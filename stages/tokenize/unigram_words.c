#include "stages/tokenize/unigram_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum status build_trie(struct unigram_words *words, const struct unigram_model *model) {
  struct piece_trie_key *keys = calloc((size_t)model->piece_count, sizeof *keys);
  CHECK(keys, STATUS_ENVIRONMENT, "out of memory: a tokenizer's pieces");
  size_t count = 0;
  for (int32_t i = 0; i < model->piece_count; i++) {
    const struct unigram_piece *piece = &model->pieces[i];
    if (piece->type != UNIGRAM_NORMAL) continue;
    keys[count++] = (struct piece_trie_key){(const unsigned char *)piece->bytes, piece->count, i,
                                            (float)piece->score};
  }
  const enum status status = piece_trie_build(&words->trie, keys, count);
  free(keys);
  TRY(status);
  return STATUS_OK;
}

static void open_viterbi(struct unigram_words *words, const struct unigram_model *model) {
  words->viterbi = (struct viterbi){
      .trie = &words->trie, .unknown = model->unknown, .unknown_score = model->unknown_score};
  for (int i = 0; i < UNIGRAM_SPACE_BYTES; i++)
    words->viterbi.space =
        piece_trie_step(&words->trie, words->viterbi.space, (unsigned char)UNIGRAM_SPACE[i]);
  for (int32_t i = 0; i < model->piece_count; i++)
    if (model->pieces[i].count > words->viterbi.longest)
      words->viterbi.longest = model->pieces[i].count;
}

static enum status keep_exact_scores(struct unigram_words *words,
                                     const struct unigram_model *model) {
  words->exact = malloc((size_t)model->piece_count * sizeof *words->exact);
  CHECK(words->exact, STATUS_ENVIRONMENT, "out of memory: scores of pieces");
  for (int32_t i = 0; i < model->piece_count; i++) words->exact[i] = model->pieces[i].score;
  words->viterbi.exact = words->exact;
  words->worst = 0; /* no sum matters */
  return STATUS_OK;
}

enum status unigram_words_open(struct unigram_words *words, const struct unigram_model *model) {
  *words = (struct unigram_words){0};
  TRY(build_trie(words, model));
  open_viterbi(words, model);
  words->scores = malloc((size_t)model->piece_count * sizeof *words->scores);
  CHECK(words->scores, STATUS_ENVIRONMENT, "out of memory: scores of pieces");
  for (int32_t i = 0; i < model->piece_count; i++) {
    words->scores[i] = (float)(i == model->unknown ? model->unknown_score : model->pieces[i].score);
    words->worst = fmaxf(words->worst, fabsf(words->scores[i]) * 1.001F); /* rounding */
  }
  if (model->words_alone) TRY(keep_exact_scores(words, model));
  return word_cache_open(&words->cache);
}

void unigram_words_close(struct unigram_words *words) {
  piece_trie_free(&words->trie);
  viterbi_free(&words->viterbi);
  word_cache_close(&words->cache);
  free(words->scores);
  free(words->exact);
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

/* Brings the sum up to date. Words that are remembered are added without it; those that stand alone
 * come behind no sum. */
static void add_up(struct unigram_words *words) {
  const int32_t *ids = words->ids->ids;
  if (words->exact) return;
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
  if (!words->exact) words->sum = (float)((double)words->scores[id] + words->sum);
  if (!(unknown && words->unknown)) words->ids->ids[words->ids->count++] = id;
  words->unknown = unknown;
  words->summed = words->ids->count;
}

/* Makes neighbouring unknown characters from the place `first` on one token. */
static void join_unknown(struct unigram_words *words, size_t first) {
  int32_t *const ids = words->ids->ids;
  size_t kept = first;
  for (size_t i = first; i < words->ids->count; i++) {
    const bool unknown = ids[i] == words->viterbi.unknown;
    if (!(unknown && words->unknown)) ids[kept++] = ids[i];
    words->unknown = unknown;
  }
  words->ids->count = kept;
}

/* Segments a word, with its space before it, and adds its pieces. The first WORD_LONG_PIECES are
 * noted in words->pieces. */
static enum status add_segmented(struct unigram_words *words, const char *word, size_t count,
                                 struct viterbi_result *result) {
  add_up(words);
  const size_t first = words->ids->count;
  TRY(viterbi_run(&words->viterbi, word, count, words->sum, words->ids, result));
  const size_t noted = result->count < WORD_LONG_PIECES ? result->count : WORD_LONG_PIECES;
  memcpy(words->pieces, words->ids->ids + first, noted * sizeof *words->pieces);
  if (result->unknown) join_unknown(words, first);
  words->unknown = result->unknown && words->unknown;
  words->sum = words->exact ? 0 : result->sum;
  words->summed = words->ids->count;
  return STATUS_OK;
}

/* Segments a word and remembers the result, if it is one that holds for later. */
static enum status add_new(struct unigram_words *words, const char *word, size_t count) {
  struct viterbi_result result;
  add_up(words);
  const double before = words->sum;
  TRY(add_segmented(words, word, count, &result));
  const bool holds = result.limit > -before && result.count <= WORD_LONG_PIECES;
  if (!holds || count > WORD_LONG_BYTES) return STATUS_OK;
  const struct word_pieces pieces = {
      .ids = words->pieces,
      .count = result.count,
      .limit = (float)(result.limit * (1 - 0x1p-20)), /* rounded towards safety */
      .beside = result.unknown};
  if (count > WORD_SHORT_BYTES) {
    word_cache_put_long(&words->cache, word, count, pieces);
    return STATUS_OK;
  }
  uint64_t key[2];
  word_cache_key(key, word, count, count);
  word_cache_put(&words->cache, key, pieces);
  return STATUS_OK;
}

static bool has_unknown(const struct unigram_words *words, const int32_t *pieces, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (pieces[i] == words->viterbi.unknown) return true;
  return false;
}

/* A word whose pieces are known. */
static enum status add_pieces(struct unigram_words *words, const int32_t *pieces, size_t count) {
  TRY(tokens_reserve(words->ids, count));
  if (!has_unknown(words, pieces, count)) {
    words->unknown = false;
    return tokens_add(words->ids, pieces, count);
  }
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
  for (; words->empty; words->empty--) TRY(add_segmented(words, "", 0, &result));
  return STATUS_OK;
}

static enum status add_short(struct unigram_words *words, const uint64_t key[2], const char *word,
                             size_t count) {
  const struct word_short *known = word_cache_find(&words->cache, key);
  if (!known || !is_above(words, known->limit)) return add_new(words, word, count);
  if (known->beside)
    return add_pieces(words, word_cache_beside(&words->cache, known), known->count);
  TRY(tokens_reserve(words->ids, WORD_SHORT_PIECES));
  words->ids->count += word_short_ids(words->ids->ids + words->ids->count, known);
  words->unknown = false;
  return STATUS_OK;
}

/* Words that the cache has at hand, up to the first that is another one or may depend on the sum:
 * returns its place. There is room for the pieces of a batch. */
static size_t add_known(struct unigram_words *words, size_t from) {
  const struct word_batch *batch = &words->batch;
  int32_t *const first = words->ids->ids + words->ids->count, *at = first;
  const size_t most = words->ids->count - words->first + WORD_BATCH_WORDS * WORD_SHORT_PIECES;
  const float lowest = (float)most * words->worst;
  for (; from < batch->count; from++) {
    const struct word_short *known = word_bucket_place(batch->buckets[from], batch->keys[from]);
    if (!word_short_is(known, batch->keys[from]) || known->beside || known->limit < lowest) break;
    at += word_short_ids(at, known);
  }
  words->unknown = words->unknown && at == first;
  words->ids->count += (size_t)(at - first);
  return from;
}

static enum status add_other(struct unigram_words *words, size_t place) {
  const struct word_batch *batch = &words->batch;
  const size_t count = batch->lengths[place];
  if (count > WORD_SHORT_BYTES) return add_longer(words, batch->words[place], count);
  return add_short(words, batch->keys[place], batch->words[place], count);
}

enum status unigram_words_flush(struct unigram_words *words, const char *end) {
  struct word_batch *batch = &words->batch;
  if (batch->count && words->empty) TRY(add_empty_words(words));
  word_batch_seek(batch, &words->cache, end);
  for (size_t i = 0; i < batch->count; i++) {
    TRY(tokens_reserve(words->ids, WORD_BATCH_WORDS * WORD_SHORT_PIECES));
    i = add_known(words, i);
    if (i < batch->count) TRY(add_other(words, i));
  }
  batch->count = 0;
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
