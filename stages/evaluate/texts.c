#include "stages/evaluate/texts.h"

#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/text.h"
#include "sharding/store.h"

/* The first few rows of the column "text", which is bytes. */
static enum status read_sample(char **sample, const struct store_column *column,
                               struct source_cache *cache, int64_t row) {
  int64_t length;
  struct text readable = {0};
  char *bytes = malloc((size_t)column->width + 1);
  CHECK(bytes, STATUS_ENVIRONMENT, "out of memory: a text of %lld bytes", (long long)column->width);
  enum status status = store_read(column, cache, row, bytes, &length);
  if (status == STATUS_OK) status = text_add_readable(&readable, bytes, (size_t)length);
  if (status == STATUS_OK) status = text_add(&readable, "");
  free(bytes);
  if (status != STATUS_OK) text_free(&readable);
  *sample = readable.bytes;
  return status;
}

static enum status read_samples(struct texts *texts, const struct store *store,
                                struct source_cache *cache) {
  struct store_column column;
  if (store_find(store, &column, "text") != STATUS_OK) {
    error_clear(); /* rows of tokens alone */
    return STATUS_OK;
  }
  for (int64_t row = 0; row < EVALUATION_TEXTS && row < texts->count; row++)
    TRY(read_sample(&texts->samples[row], &column, cache, row));
  return STATUS_OK;
}

static enum status read_rows(struct texts *texts, const struct store *store,
                             struct source_cache *cache, int64_t most) {
  struct store_column column;
  const char *tokenizer = store_value(store, "tokenizer");
  TRY(store_find(store, &column, "tokens"));
  snprintf(texts->tokenizer, sizeof texts->tokenizer, "%s", tokenizer ? tokenizer : "");
  texts->count = store->rows < most ? store->rows : most;
  texts->positions = column.width;
  texts->tokens = calloc((size_t)(texts->count * texts->positions), sizeof *texts->tokens);
  texts->lengths = calloc((size_t)texts->count, sizeof *texts->lengths);
  CHECK(texts->tokens && texts->lengths, STATUS_ENVIRONMENT, "out of memory: %lld rows of tokens",
        (long long)texts->count);
  for (int64_t row = 0; row < texts->count; row++) {
    int64_t length;
    TRY(store_read_int32(&column, cache, row, texts->tokens + row * texts->positions, &length));
    texts->lengths[row] = (int32_t)length;
  }
  return read_samples(texts, store, cache);
}

enum status texts_read(struct texts *texts, const char *folder, const char *name, int64_t most) {
  struct store store;
  struct source_cache cache = {0};
  *texts = (struct texts){0};
  TRY(store_open(&store, folder, name));
  const enum status status = read_rows(texts, &store, &cache, most);
  source_cache_free(&cache);
  store_close(&store);
  if (status != STATUS_OK) texts_free(texts);
  TRY(status);
  return STATUS_OK;
}

void texts_free(struct texts *texts) {
  free(texts->tokens);
  free(texts->lengths);
  for (int i = 0; i < EVALUATION_TEXTS; i++) free(texts->samples[i]);
  *texts = (struct texts){0};
}
