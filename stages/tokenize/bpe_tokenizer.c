#include "stages/tokenize/bpe_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/tokenizer_kind.h"
#include "stages/tokenize/word_batch.h"
#include "stages/tokenize/word_cache.h"

const struct bpe_cut bpe_cut_gpt2 = {"gpt2", pretoken_gpt2, pretoken_starts_gpt2};
const struct bpe_cut bpe_cut_cl100k = {"cl100k", pretoken_cl100k, pretoken_starts_cl100k};
const struct bpe_cut bpe_cut_llama3 = {"llama3", pretoken_llama3, pretoken_starts_llama3};
const struct bpe_cut bpe_cut_o200k = {"o200k", pretoken_o200k, pretoken_starts_o200k};

enum { RANK_FREE = -1, RANK_SPECIAL = -2 };

struct bpe_tokenizer {
  struct bpe_vocabulary vocabulary;
  int32_t *ranks; /* [vocabulary_size], owned: of each id, or one of those below */
  struct unicode unicode;
  struct pretoken_window window;
  struct bpe bpe;
  struct word_cache cache;
  struct word_batch batch;
  char rules[96];
};

static enum status encode_and_keep(struct bpe_tokenizer *self, struct tokens *ids,
                                   const char *bytes, size_t count) {
  const size_t first = ids->count;
  TRY(bpe_encode(&self->bpe, ids, bytes, count));
  if (self->vocabulary.ids)
    for (size_t i = first; i < ids->count; i++) ids->ids[i] = self->vocabulary.ids[ids->ids[i]];
  const struct word_pieces pieces = {.ids = ids->ids + first, .count = ids->count - first};
  if (pieces.count > WORD_LONG_PIECES || count > WORD_LONG_BYTES) return STATUS_OK;
  if (count > WORD_SHORT_BYTES) {
    word_cache_put_long(&self->cache, bytes, count, pieces);
    return STATUS_OK;
  }
  uint64_t key[2];
  word_cache_key(key, bytes, count, count);
  word_cache_put(&self->cache, key, pieces);
  return STATUS_OK;
}

static enum status encode_longer(struct bpe_tokenizer *self, struct tokens *ids, const char *bytes,
                                 size_t count) {
  const struct word_long *known =
      count <= WORD_LONG_BYTES ? word_cache_find_long(&self->cache, bytes, count) : NULL;
  if (!known) return encode_and_keep(self, ids, bytes, count);
  return tokens_add(ids, known->ids, known->count);
}

/* A word that is not among those of a few tokens that the cache has at hand. */
static enum status encode_other(struct bpe_tokenizer *self, struct tokens *ids, const char *bytes,
                                size_t count, const uint64_t key[2]) {
  if (count > WORD_SHORT_BYTES) return encode_longer(self, ids, bytes, count);
  const struct word_short *known = word_cache_find(&self->cache, key);
  if (!known) return encode_and_keep(self, ids, bytes, count);
  return tokens_add(ids, word_cache_beside(&self->cache, known), known->count);
}

/* Words that the cache has at hand, up to the first that is another one: returns its place. */
static size_t encode_known(const struct word_batch *batch, size_t from, struct tokens *ids) {
  int32_t *at = ids->ids + ids->count;
  for (; from < batch->count; from++) {
    const struct word_short *known = word_bucket_place(batch->buckets[from], batch->keys[from]);
    if (!word_short_is(known, batch->keys[from]) || known->beside) break;
    at += word_short_ids(at, known);
  }
  ids->count = (size_t)(at - ids->ids);
  return from;
}

static enum status encode_batch(struct bpe_tokenizer *self, struct tokens *ids, const char *end) {
  struct word_batch *batch = &self->batch;
  word_batch_seek(batch, &self->cache, end);
  for (size_t i = 0; i < batch->count; i++) {
    TRY(tokens_reserve(ids, WORD_BATCH_WORDS * WORD_SHORT_PIECES));
    i = encode_known(batch, i, ids);
    if (i < batch->count)
      TRY(encode_other(self, ids, batch->words[i], batch->lengths[i], batch->keys[i]));
  }
  batch->count = 0;
  return STATUS_OK;
}

/* Cuts the next words off, at least one; returns their bytes. */
static size_t cut(struct bpe_tokenizer *self, const char *bytes, size_t count) {
  const uint64_t starts = self->vocabulary.cut->many(&self->window, bytes, count);
  if (starts) return word_batch_cut(&self->batch, bytes, starts);
  const size_t length = self->vocabulary.cut->one(&self->unicode, bytes, count);
  word_batch_add(&self->batch, bytes, length);
  return length;
}

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  struct bpe_tokenizer *self = tokenizer->state;
  self->batch.count = 0;
  TRY(tokens_reserve(ids, count / 3 + 16));
  for (size_t at = 0; at < count;) {
    at += cut(self, bytes + at, count - at);
    if (self->batch.count >= WORD_BATCH_FULL) TRY(encode_batch(self, ids, bytes + count));
  }
  return encode_batch(self, ids, bytes + count);
}

static enum status decode(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                          size_t count) {
  const struct bpe_tokenizer *self = tokenizer->state;
  for (size_t i = 0; i < count; i++) {
    const int32_t rank = self->ranks[ids[i]];
    if (rank == RANK_SPECIAL) continue;
    CHECK(rank >= 0, STATUS_MISMATCH,
          "token %zu has the id %d, which the %s vocabulary leaves free", i, ids[i],
          tokenizer->facts.kind);
    TRY(text_add_bytes(text, self->bpe.tokens[rank].bytes, self->bpe.tokens[rank].count));
  }
  return STATUS_OK;
}

void bpe_vocabulary_free(struct bpe_vocabulary *vocabulary) {
  free(vocabulary->tokens);
  free(vocabulary->ids);
  free(vocabulary->specials);
  text_free(&vocabulary->bytes);
  *vocabulary = (struct bpe_vocabulary){0};
}

static void close_bpe(void *state) {
  struct bpe_tokenizer *self = state;
  if (!self) return;
  unicode_close(&self->unicode);
  bpe_close(&self->bpe);
  bpe_vocabulary_free(&self->vocabulary);
  word_cache_close(&self->cache);
  free(self->ranks);
  free(self);
}

static const struct tokenizer_methods methods = {encode, decode, close_bpe};

static void set_facts(struct tokenizer *tokenizer, struct bpe_tokenizer *self) {
  struct tokenizer_facts *facts = &tokenizer->facts;
  snprintf(self->rules, sizeof self->rules, "bpe 1: %s, Unicode %s", self->vocabulary.cut->name,
           unicode_version());
  tokenizer->rules = self->rules;
  facts->reference = self->vocabulary.reference;
  facts->vocabulary_size = self->vocabulary.vocabulary_size;
  facts->eos = self->vocabulary.eos;
  facts->pad = self->vocabulary.pad;
  facts->bos = self->vocabulary.bos;
  facts->unk = TOKEN_NONE;
  facts->lossless = true;
}

/* Notes the rank of each id. */
static enum status note_ranks(struct bpe_tokenizer *self) {
  const struct bpe_vocabulary *vocabulary = &self->vocabulary;
  self->ranks = malloc((size_t)vocabulary->vocabulary_size * sizeof *self->ranks);
  CHECK(self->ranks, STATUS_ENVIRONMENT, "out of memory: %d ids", vocabulary->vocabulary_size);
  for (int32_t id = 0; id < vocabulary->vocabulary_size; id++) self->ranks[id] = RANK_FREE;
  for (int32_t rank = 0; rank < vocabulary->count; rank++)
    if (vocabulary->tokens[rank].bytes)
      self->ranks[vocabulary->ids ? vocabulary->ids[rank] : rank] = rank;
  for (int32_t i = 0; i < vocabulary->special_count; i++)
    self->ranks[vocabulary->specials[i]] = RANK_SPECIAL;
  return STATUS_OK;
}

enum status bpe_tokenizer_open(struct tokenizer *tokenizer, struct bpe_vocabulary *vocabulary) {
  struct bpe_tokenizer *self = calloc(1, sizeof *self);
  if (!self) bpe_vocabulary_free(vocabulary);
  CHECK(self, STATUS_ENVIRONMENT, "out of memory: a tokenizer");
  tokenizer->methods = &methods;
  tokenizer->state = self;
  self->vocabulary = *vocabulary;
  TRY(bpe_open(&self->bpe, self->vocabulary.tokens, self->vocabulary.count));
  TRY(note_ranks(self));
  TRY(unicode_open(&self->unicode));
  TRY(word_cache_open(&self->cache));
  self->window = (struct pretoken_window){&self->unicode, ascii_masks_best()};
  set_facts(tokenizer, self);
  return STATUS_OK;
}

const struct bpe *bpe_tokenizer_merges(const struct tokenizer *tokenizer) {
  const struct bpe_tokenizer *self = tokenizer->state;
  return &self->bpe;
}
