/* Sets of token rows to evaluate: samples of a generator, or held-out text. */
#ifndef STAGES_EVALUATE_TEXTS_H
#define STAGES_EVALUATE_TEXTS_H

#include "monitoring/evaluation.h"
#include "pipeline/base/hash.h"
#include "stages/evaluate/diversity.h"

/* Rows in memory, with the first few as text. */
struct texts {
  int32_t *tokens;  /* owned: [count, positions] */
  int32_t *lengths; /* owned: [count] */
  int64_t count, positions;
  char tokenizer[HASH_HEX_BYTES];  /* whose ids the tokens are; "" when the shards do not say */
  char *samples[EVALUATION_TEXTS]; /* owned; NULL where the shards hold no text */
};

/* Reads at most `most` rows of the column "tokens" of the shards of `folder`
 * called NAME-..., and the column "text" of the first few where there is one. Local. MISMATCH,
 * DAMAGED as the store's functions. */
enum status texts_read(struct texts *texts, const char *folder, const char *name, int64_t most);
void texts_free(struct texts *texts);

static inline struct diversity_rows texts_rows(const struct texts *texts) {
  return (struct diversity_rows){texts->tokens, texts->lengths, texts->count, texts->positions};
}

#endif
