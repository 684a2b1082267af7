/* What a kind of tokenizer provides; for the files of stages/tokenize only. */
#ifndef STAGES_TOKENIZE_TOKENIZER_KIND_H
#define STAGES_TOKENIZE_TOKENIZER_KIND_H

#include "stages/tokenize/tokenizer.h"

struct tokenizer_methods {
  enum status (*encode)(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                        size_t count);
  /* `ids` are inside the vocabulary */
  enum status (*decode)(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                        size_t count);
  void (*close)(void *state);
};

struct tokenizer {
  const struct tokenizer_methods *methods;
  struct tokenizer_facts facts;
  const char *rules; /* names the rules beside the model; a part of the hash */
  struct text model; /* the bytes of the model's file; empty for kinds without one */
  void *state;       /* of the kind; freed by methods->close, which accepts NULL */
};

/* One function for each kind: fills methods, facts (all but kind and hash), rules and state from
 * `model`. On failure `state` may be set and is closed by the caller. */
#define TOKENIZER(kind, open, file) enum status open(struct tokenizer *tokenizer);
#include "stages/tokenize/tokenizer_kinds.def"
#undef TOKENIZER

#endif
