#include "stages/flow/token_rows.h"

#include <stdlib.h>
#include <string.h>

static enum status take_buffers(struct token_rows *rows) {
  const size_t most = (size_t)rows->most;
  rows->tokens = calloc(most * (size_t)rows->positions, sizeof *rows->tokens);
  rows->lengths = calloc(most, sizeof *rows->lengths);
  rows->sources = calloc(most, sizeof *rows->sources);
  CHECK(rows->tokens && rows->lengths && rows->sources, STATUS_ENVIRONMENT,
        "out of memory: a batch of %zu rows of tokens", most);
  return STATUS_OK;
}

static enum status open_all(struct token_rows *rows, const struct token_rows_request *request) {
  TRY(store_open(&rows->store, request->folder, rows->side));
  TRY(store_find(&rows->store, &rows->column, "tokens"));
  const char *packing = store_value(&rows->store, "packing");
  rows->pairs = packing && strcmp(packing, "pairs") == 0;
  rows->pad = request->pad >= 0 ? request->pad : 0;
  if (!rows->pairs) return take_buffers(rows);
  CHECK(request->end >= 0, STATUS_MISMATCH,
        "'%s' holds pairs, but its tokenizer has no end token; take another tokenizer",
        request->folder);
  rows->pad = request->end;
  TRY(store_find(&rows->store, &rows->source_column, "source_length"));
  return take_buffers(rows);
}

enum status token_rows_open(struct token_rows *rows, const struct token_rows_request *request) {
  *rows = (struct token_rows){.side = request->side,
                              .positions = request->positions,
                              .vocabulary = request->vocabulary,
                              .most = request->most};
  const enum status status = open_all(rows, request);
  if (status != STATUS_OK) token_rows_close(rows);
  TRY(status);
  return STATUS_OK;
}

void token_rows_close(struct token_rows *rows) {
  source_cache_free(&rows->cache);
  store_close(&rows->store);
  free(rows->tokens);
  free(rows->lengths);
  free(rows->sources);
  *rows = (struct token_rows){0};
}

static enum status check_tokens(const struct token_rows *rows, const int32_t *tokens,
                                int64_t length, int64_t row) {
  for (int64_t j = 0; j < length; j++)
    CHECK(tokens[j] >= 0 && tokens[j] < rows->vocabulary, STATUS_DAMAGED,
          "'%s', side %s, row %lld: token %d, the vocabulary has %lld", rows->store.folder,
          rows->side, (long long)row, tokens[j], (long long)rows->vocabulary);
  return STATUS_OK;
}

static enum status read_source(struct token_rows *rows, int64_t slot, int64_t row) {
  int64_t count;
  if (!rows->pairs) return STATUS_OK;
  TRY(store_read_int32(&rows->source_column, &rows->cache, row, rows->sources + slot, &count));
  CHECK(rows->sources[slot] > 0 && rows->sources[slot] < rows->lengths[slot], STATUS_DAMAGED,
        "'%s', side %s, row %lld: a source of %d tokens in a row of %d", rows->store.folder,
        rows->side, (long long)row, rows->sources[slot], rows->lengths[slot]);
  return STATUS_OK;
}

enum status token_rows_read(struct token_rows *rows, int64_t first, int64_t count) {
  const int64_t T = rows->positions;
  for (int64_t i = 0; i < count; i++) {
    int64_t length;
    int32_t *tokens = rows->tokens + i * T;
    for (int64_t j = 0; j < T; j++) tokens[j] = rows->pad;
    TRY(store_read_int32(&rows->column, &rows->cache, first + i, tokens, &length));
    rows->lengths[i] = (int32_t)length;
    TRY(check_tokens(rows, tokens, length, first + i));
    TRY(read_source(rows, i, first + i));
  }
  return STATUS_OK;
}
