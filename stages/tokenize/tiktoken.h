/* Reads .tiktoken files: one token a line, its bytes in base64, a space, its rank. */
#ifndef STAGES_TOKENIZE_TIKTOKEN_H
#define STAGES_TOKENIZE_TIKTOKEN_H

#include "pipeline/base/text.h"
#include "stages/tokenize/bpe.h"

struct tiktoken {
  struct bpe_token *tokens; /* owned; the index is the rank */
  int32_t count;            /* largest rank + 1 */
  struct text bytes;        /* owned; what the tokens point into */
};

/* Parses a file's bytes. Local. DAMAGED with the line: not base64, no rank, a rank twice. */
enum status tiktoken_parse(struct tiktoken *file, const char *bytes, size_t count);
void tiktoken_free(struct tiktoken *file);

#endif
