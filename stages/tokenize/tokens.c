#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/tokenizer.h"

enum status tokens_reserve(struct tokens *tokens, size_t more) {
  const size_t needed = tokens->count + more;
  if (needed <= tokens->capacity) return STATUS_OK;
  const size_t capacity = needed > 2 * tokens->capacity ? needed : 2 * tokens->capacity;
  int32_t *ids = realloc(tokens->ids, capacity * sizeof *ids);
  CHECK(ids, STATUS_ENVIRONMENT, "out of memory: a list of %zu tokens", capacity);
  tokens->ids = ids;
  tokens->capacity = capacity;
  return STATUS_OK;
}

enum status tokens_add(struct tokens *tokens, const int32_t *ids, size_t count) {
  TRY(tokens_reserve(tokens, count));
  if (count) memcpy(tokens->ids + tokens->count, ids, count * sizeof *ids);
  tokens->count += count;
  return STATUS_OK;
}

void tokens_free(struct tokens *tokens) {
  free(tokens->ids);
  *tokens = (struct tokens){0};
}
