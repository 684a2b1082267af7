/* Byte-level BPE tokenizers: a .tiktoken file with one of the pre-tokenisers. Special tokens have
 * ids, but no text of a document becomes one (as tiktoken's encode_ordinary). Bytes that are not
 * UTF-8 are kept: each is a symbol of its own to the pre-tokeniser.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/bpe.h"
#include "stages/tokenize/pretoken.h"
#include "stages/tokenize/pretoken_window.h"
#include "stages/tokenize/tiktoken.h"
#include "stages/tokenize/tokenizer_kind.h"
#include "stages/tokenize/word_batch.h"
#include "stages/tokenize/word_cache.h"

struct special {
  const char *text;
  int32_t id;
};

/* One family of models: how text is cut, and the tokens that no text gives. The first is the end of
 * a document. */
struct family {
  const char *name;
  pretoken_function *pretoken;
  pretoken_starts_function *starts;
  int32_t vocabulary_size;
  struct special specials[6]; /* ended by a NULL text */
};

struct bpe_tokenizer {
  const struct family *family;
  struct unicode unicode;
  struct pretoken_window window;
  struct tiktoken file;
  struct bpe bpe;
  struct word_cache cache;
  struct word_batch batch;
  char rules[96];
};

static enum status encode_and_keep(struct bpe_tokenizer *self, struct tokens *ids,
                                   const char *bytes, size_t count) {
  const size_t first = ids->count;
  TRY(bpe_encode(&self->bpe, ids, bytes, count));
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
  const uint64_t starts = self->family->starts(&self->window, bytes, count);
  if (starts) return word_batch_cut(&self->batch, bytes, starts);
  const size_t length = self->family->pretoken(&self->unicode, bytes, count);
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

static bool is_special(const struct family *family, int32_t id) {
  for (const struct special *special = family->specials; special->text; special++)
    if (special->id == id) return true;
  return false;
}

static enum status decode(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                          size_t count) {
  const struct bpe_tokenizer *self = tokenizer->state;
  for (size_t i = 0; i < count; i++) {
    if (is_special(self->family, ids[i])) continue;
    CHECK(ids[i] < self->bpe.count && self->bpe.tokens[ids[i]].bytes, STATUS_MISMATCH,
          "token %zu has the id %d, which the %s vocabulary leaves free", i, ids[i],
          self->family->name);
    const struct bpe_token *token = &self->bpe.tokens[ids[i]];
    TRY(text_add_bytes(text, token->bytes, token->count));
  }
  return STATUS_OK;
}

static void close_bpe(void *state) {
  struct bpe_tokenizer *self = state;
  if (!self) return;
  unicode_close(&self->unicode);
  tiktoken_free(&self->file);
  bpe_close(&self->bpe);
  word_cache_close(&self->cache);
  free(self);
}

static const struct tokenizer_methods methods = {encode, decode, close_bpe};

static void set_facts(struct tokenizer *tokenizer, const struct family *family,
                      struct bpe_tokenizer *self) {
  struct tokenizer_facts *facts = &tokenizer->facts;
  snprintf(self->rules, sizeof self->rules, "bpe 1: %s, Unicode %s", family->name,
           unicode_version());
  tokenizer->rules = self->rules;
  facts->reference = "tiktoken encode_ordinary";
  facts->vocabulary_size = family->vocabulary_size;
  facts->eos = facts->pad = family->specials[0].id; /* the end also fills up */
  facts->bos = facts->unk = TOKEN_NONE;
  facts->lossless = true;
}

static enum status open_family(struct tokenizer *tokenizer, const struct family *family) {
  struct bpe_tokenizer *self = calloc(1, sizeof *self);
  CHECK(self, STATUS_ENVIRONMENT, "out of memory: a tokenizer");
  tokenizer->methods = &methods;
  tokenizer->state = self;
  self->family = family;
  TRY(tiktoken_parse(&self->file, tokenizer->model.bytes, tokenizer->model.length));
  CHECK(self->file.count <= family->vocabulary_size, STATUS_MISMATCH,
        "the file has ranks up to %d; a %s vocabulary has %d ids", self->file.count - 1,
        family->name, family->vocabulary_size);
  TRY(bpe_open(&self->bpe, self->file.tokens, self->file.count));
  TRY(unicode_open(&self->unicode));
  self->window = (struct pretoken_window){&self->unicode, ascii_masks_best()};
  TRY(word_cache_open(&self->cache));
  set_facts(tokenizer, family, self);
  return STATUS_OK;
}

enum status gpt2_open(struct tokenizer *tokenizer) {
  static const struct family family = {
      "gpt2", pretoken_gpt2, pretoken_starts_gpt2, 50257, {{"<|endoftext|>", 50256}}};
  return open_family(tokenizer, &family);
}

enum status cl100k_open(struct tokenizer *tokenizer) {
  static const struct family family = {"cl100k",
                                       pretoken_cl100k,
                                       pretoken_starts_cl100k,
                                       100277,
                                       {{"<|endoftext|>", 100257},
                                        {"<|fim_prefix|>", 100258},
                                        {"<|fim_middle|>", 100259},
                                        {"<|fim_suffix|>", 100260},
                                        {"<|endofprompt|>", 100276}}};
  return open_family(tokenizer, &family);
}

enum status o200k_open(struct tokenizer *tokenizer) {
  static const struct family family = {"o200k",
                                       pretoken_o200k,
                                       pretoken_starts_o200k,
                                       200019,
                                       {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}};
  return open_family(tokenizer, &family);
}
