/* Byte-level BPE tokenizers, whatever file their vocabulary comes from. Special tokens have ids,
 * but no text of a document becomes one (as tiktoken's encode_ordinary). Bytes that are not UTF-8
 * are kept: each is a symbol of its own to the pre-tokeniser.
 */
#ifndef STAGES_TOKENIZE_BPE_TOKENIZER_H
#define STAGES_TOKENIZE_BPE_TOKENIZER_H

#include "stages/tokenize/bpe.h"
#include "stages/tokenize/pretoken.h"
#include "stages/tokenize/pretoken_window.h"

/* How text is cut before its bytes are merged. */
struct bpe_cut {
  const char *name;
  pretoken_function *one;
  pretoken_starts_function *many;
};

extern const struct bpe_cut bpe_cut_gpt2, bpe_cut_cl100k, bpe_cut_llama3, bpe_cut_o200k;

struct bpe_vocabulary {
  const struct bpe_cut *cut;
  struct bpe_token *tokens; /* [count], owned; by rank */
  int32_t count;
  struct text bytes; /* owned; what the tokens point into */
  int32_t *ids;      /* [count], owned: id of each rank; NULL: the same number */
  int32_t *specials; /* [special_count], owned: ids that no text gives */
  int32_t special_count;
  int32_t vocabulary_size;
  int32_t eos, pad, bos;
  const char *reference; /* borrowed */
};

void bpe_vocabulary_free(struct bpe_vocabulary *vocabulary);

/* Makes `tokenizer` one with this vocabulary, which is moved into it. Local. DAMAGED as bpe_open,
 * ENVIRONMENT when memory is out. */
enum status bpe_tokenizer_open(struct tokenizer *tokenizer, struct bpe_vocabulary *vocabulary);

/* The merges that it was opened with; borrowed. Local. */
const struct bpe *bpe_tokenizer_merges(const struct tokenizer *tokenizer);

#endif
