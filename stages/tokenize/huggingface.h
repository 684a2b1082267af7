/* Tokenizers as Hugging Face's library keeps them: tokenizer.json, or vocab.json and merges.txt.
 * Covered are unigram models with a compiled normaliser, as T5's, and byte-level BPE with the
 * pre-tokenisers of GPT-2, cl100k, Llama 3 and o200k. Anything else is refused with the key that it
 * stands under. Special tokens have ids that no text gives, as with the library's
 * encode_special_tokens; but for T5's sentinels. What post-processors add is left out.
 */
#ifndef STAGES_TOKENIZE_HUGGINGFACE_H
#define STAGES_TOKENIZE_HUGGINGFACE_H

#include "stages/tokenize/bpe_tokenizer.h"
#include "stages/tokenize/json_place.h"
#include "stages/tokenize/unigram_model.h"

enum { HUGGINGFACE_MAX_BYTES = 256 << 20 }; /* of a file */

/* A token beside the model's, or with a role among them. */
struct added_token {
  const char *text; /* borrowed from the file */
  int32_t id;
};

struct added_tokens {
  struct added_token *tokens; /* owned */
  size_t count;
};

/* Reads added_tokens; ids are below BPE_MAX_TOKENS. Local. MISMATCH for one that is not special,
 * DAMAGED for an id that is there twice. On failure there is nothing to free. */
enum status added_tokens_read(struct added_tokens *added, const struct json_place *top);
void added_tokens_free(struct added_tokens *added);

/* The id of the first of `names` (ended by NULL) that is there, or `otherwise`. Local. */
int32_t added_tokens_find(const struct added_tokens *added, const char *const *names,
                          int32_t otherwise);

/* Opens the two kinds of models from a file whose general parts were checked. Local. MISMATCH for
 * what is not covered, DAMAGED for what makes no sense. */
enum status huggingface_open_unigram(struct tokenizer *tokenizer, const struct json_place *top,
                                     const struct added_tokens *added);
enum status huggingface_open_bpe(struct tokenizer *tokenizer, const struct json_place *top,
                                 const struct added_tokens *added);

/* How the text of a byte-level BPE is cut. Local. MISMATCH with the key for what is not covered. */
enum status huggingface_read_cut(const struct bpe_cut **cut, const struct json_place *top);

/* Reads what a specification names: a tokenizer.json, a vocab.json (merges.txt beside it is joined
 * to it), or a folder with either. Local. MISMATCH when there is none. */
enum status huggingface_read(struct text *file, const char *path);

#endif
