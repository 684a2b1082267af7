/* Tokenizers: text to token ids and back, behind one interface.
 *
 * A tokenizer is opened from a specification `KIND[:PATH]` or from the folder of a finished
 * tokenize node. Kinds (tokenizer_kinds.def): byte, text8 (27 characters), unigram (our own path
 * for SentencePiece unigram models), t5 (unigram and 100 sentinels), sentencepiece (the library:
 * the reference of the two before), and byte-level BPE with the pre-tokenisers gpt2, cl100k and
 * o200k (.tiktoken files), and huggingface (tokenizer.json, or vocab.json and
 * merges.txt).
 *
 * Bytes that are not UTF-8: byte and BPE keep them as they are; the SentencePiece kinds read each
 * such byte as U+FFFD, as the library does. Encoding fills a cache, so that one tokenizer serves
 * one thread; ids never depend on what was encoded before.
 */
#ifndef STAGES_TOKENIZE_TOKENIZER_H
#define STAGES_TOKENIZE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

enum { TOKEN_NONE = -1 }; /* the id of a special token that a tokenizer lacks */

/* A growing list of token ids. Zero-initialise. */
struct tokens {
  int32_t *ids; /* owned */
  size_t count;
  size_t capacity;
};

/* Makes room for `more` further ids; appends ids; frees. Local. ENVIRONMENT when memory is out. */
enum status tokens_reserve(struct tokens *tokens, size_t more);
enum status tokens_add(struct tokens *tokens, const int32_t *ids, size_t count);
void tokens_free(struct tokens *tokens);

/* What is fixed about a tokenizer. */
struct tokenizer_facts {
  const char *kind; /* a name of tokenizer_kinds.def; borrowed */
  const char
      *fallback; /* why the library does the work instead of our own path; NULL: it does not */
  const char *reference;   /* the implementation whose ids these are, with version; borrowed */
  int32_t vocabulary_size; /* ids are in [0, vocabulary_size) */
  int32_t pad, eos, unk, bos;
  int32_t sentinels;   /* the last ids, which stand for spans that are left out; 0: it has none */
  bool lossless;       /* decode(encode(bytes)) = bytes for every input */
  struct hash128 hash; /* of the model's bytes, the rules and the version of the Unicode tables */
};

struct tokenizer;

/* Opens a tokenizer from `spec`: "byte", "t5:PATH", ..., or the path of a folder written by
 * tokenizer_save. Local. MISMATCH when the file is missing or the kind is unknown; DAMAGED when the
 * file is not such a model, or the folder's hash is another one than its model's. */
enum status tokenizer_open(struct tokenizer **tokenizer, const char *spec);

/* Frees. Accepts NULL. Local. */
void tokenizer_close(struct tokenizer *tokenizer);

/* What is fixed. Borrowed from the tokenizer. Local. */
const struct tokenizer_facts *tokenizer_facts_of(const struct tokenizer *tokenizer);

/* Appends the ids of one document; no id is added at its start or end. Local. */
enum status tokenizer_encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                             size_t count);

/* Appends the text of `ids`; pad, bos and eos give nothing. Local. MISMATCH for an id outside the
 * vocabulary. */
enum status tokenizer_decode(const struct tokenizer *tokenizer, struct text *text,
                             const int32_t *ids, size_t count);

/* Writes the model's file and tokenizer.json (kind, file, sizes, hash) into a folder that exists,
 * so that tokenizer_open(folder) gives the same tokenizer. Local. WRITE on failure. */
enum status tokenizer_save(const struct tokenizer *tokenizer, const char *folder);

#endif
