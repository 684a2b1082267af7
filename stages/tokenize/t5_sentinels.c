/* The T5 rule on top of a SentencePiece model: 100 sentinels behind its pieces. The text
 * <extra_id_N> is the sentinel N, id = size - 1 - N; the text between sentinels is encoded piece by
 * piece as the model does it (as T5Tokenizer of Hugging Face transformers in its legacy behaviour).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/unigram.h"

static const char opening[] = "<extra_id_";
enum { OPENING = sizeof opening - 1 };

struct t5 {
  struct tokenizer inner; /* facts of the model alone; owns its state, borrows the model's bytes */
};

/* Number of bytes of a sentinel at the start of `bytes` (0 when there is none) and its number. */
static size_t match_sentinel(int32_t *number, const char *bytes, size_t count) {
  if (count < OPENING + 2 || memcmp(bytes, opening, OPENING) != 0) return 0;
  size_t at = OPENING;
  *number = 0;
  while (at < count && at < OPENING + 2 && bytes[at] >= '0' && bytes[at] <= '9')
    *number = *number * 10 + (bytes[at++] - '0');
  const bool padded =
      bytes[OPENING] == '0' && at == OPENING + 2; /* "<extra_id_07>" is plain text */
  if (at == OPENING || padded || at == count || bytes[at] != '>') return 0;
  return at + 1;
}

static const char *find_sentinel(size_t *length, int32_t *number, const char *bytes, size_t count) {
  const char *const end = bytes + count;
  for (const char *at = bytes; at < end; at++) {
    at = memchr(at, '<', (size_t)(end - at));
    if (!at) break;
    *length = match_sentinel(number, at, (size_t)(end - at));
    if (*length) return at;
  }
  return NULL;
}

static enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                          size_t count) {
  struct t5 *t5 = tokenizer->state;
  const char *const end = bytes + count;
  size_t length = 0;
  int32_t number = 0;
  for (const char *found; (found = find_sentinel(&length, &number, bytes, (size_t)(end - bytes)));
       bytes = found + length) {
    const int32_t id = tokenizer->facts.vocabulary_size - 1 - number;
    TRY(t5->inner.methods->encode(&t5->inner, ids, bytes, (size_t)(found - bytes)));
    TRY(tokens_add(ids, &id, 1));
  }
  return t5->inner.methods->encode(&t5->inner, ids, bytes, (size_t)(end - bytes));
}

static enum status decode(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                          size_t count) {
  const struct t5 *t5 = tokenizer->state;
  const int32_t pieces = t5->inner.facts.vocabulary_size;
  for (size_t i = 0, from = 0; i <= count; i++) {
    if (i < count && ids[i] < pieces) continue;
    TRY(t5->inner.methods->decode(&t5->inner, text, ids + from, i - from));
    if (i < count)
      TRY(text_format(text, "%s%d>", opening, tokenizer->facts.vocabulary_size - 1 - ids[i]));
    from = i + 1;
  }
  return STATUS_OK;
}

static void close_t5(void *state) {
  struct t5 *t5 = state;
  if (t5 && t5->inner.methods) t5->inner.methods->close(t5->inner.state);
  free(t5);
}

static const struct tokenizer_methods methods = {encode, decode, close_t5};

enum status t5_open_around(struct tokenizer *tokenizer,
                           enum status (*open)(struct tokenizer *inner, void *context),
                           void *context) {
  struct t5 *t5 = calloc(1, sizeof *t5);
  CHECK(t5, STATUS_ENVIRONMENT, "out of memory: a tokenizer");
  tokenizer->methods = &methods;
  tokenizer->state = t5;
  t5->inner.model = tokenizer->model;
  t5->inner.facts.kind = tokenizer->facts.kind;
  TRY(open(&t5->inner, context));
  const char *kind = tokenizer->facts.kind;
  tokenizer->facts = t5->inner.facts;
  tokenizer->facts.kind = kind;
  tokenizer->facts.vocabulary_size += T5_SENTINELS;
  tokenizer->facts.sentinels = T5_SENTINELS;
  return STATUS_OK;
}

static enum status open_inner(struct tokenizer *inner, void *context) {
  (void)context;
  return unigram_open(inner);
}

enum status t5_open(struct tokenizer *tokenizer) {
  TRY(t5_open_around(tokenizer, open_inner, NULL));
  tokenizer->rules = "t5 1: sentencepiece 1 and 100 sentinels";
  return STATUS_OK;
}
