#include "stages/tokenize/tiktoken.h"

#include <stdlib.h>
#include <string.h>

#include "stages/tokenize/base64.h"

enum { MAX_RANK = BPE_MAX_TOKENS - 1 };

struct line {
  const char *bytes;
  size_t count;
  size_t number;
};

static enum status parse_rank(const struct line *line, size_t at, int32_t *rank) {
  int64_t value = 0;
  const size_t first = at;
  for (; at < line->count && line->bytes[at] >= '0' && line->bytes[at] <= '9'; at++) {
    value = value * 10 + (line->bytes[at] - '0');
    if (value > MAX_RANK) break;
  }
  CHECK(at > first && at == line->count && value <= MAX_RANK, STATUS_DAMAGED,
        "line %zu: expected a token in base64, a space and a rank up to %d", line->number,
        MAX_RANK);
  *rank = (int32_t)value;
  return STATUS_OK;
}

static enum status grow(struct tiktoken *file, int32_t rank, size_t *capacity) {
  if ((size_t)rank >= *capacity) {
    const size_t larger = (size_t)rank + 1 > 2 * *capacity ? (size_t)rank + 1 : 2 * *capacity;
    struct bpe_token *tokens = realloc(file->tokens, larger * sizeof *tokens);
    CHECK(tokens, STATUS_ENVIRONMENT, "out of memory: %zu tokens", larger);
    memset(tokens + *capacity, 0, (larger - *capacity) * sizeof *tokens);
    file->tokens = tokens;
    *capacity = larger;
  }
  if (rank >= file->count) file->count = rank + 1;
  return STATUS_OK;
}

/* Decodes one line. file->bytes has room for all lines, so that tokens may point into it. */
static enum status parse_line(struct tiktoken *file, const struct line *line, size_t *capacity) {
  const char *gap = memchr(line->bytes, ' ', line->count);
  CHECK(gap, STATUS_DAMAGED, "line %zu: expected a token in base64, a space and a rank",
        line->number);
  const size_t digits = (size_t)(gap - line->bytes), before = file->bytes.length;
  int32_t rank = -1;
  TRY(parse_rank(line, digits + 1, &rank));
  const enum status status = base64_decode(&file->bytes, line->bytes, digits);
  CHECK(status != STATUS_DAMAGED, STATUS_DAMAGED, "line %zu: the token is not base64",
        line->number);
  TRY(status);
  TRY(grow(file, rank, capacity));
  struct bpe_token *token = &file->tokens[rank];
  CHECK(!token->count && file->bytes.length > before, STATUS_DAMAGED,
        "line %zu: the token is empty or its rank %d was given before", line->number, rank);
  token->count = (uint32_t)(file->bytes.length - before);
  token->bytes = (const unsigned char *)file->bytes.bytes + before;
  return STATUS_OK;
}

static enum status parse_lines(struct tiktoken *file, const char *bytes, size_t count) {
  const char *const end = bytes + count;
  size_t capacity = 0;
  for (struct line line = {.number = 1}; bytes < end; line.number++) {
    const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
    line.bytes = bytes;
    line.count = (size_t)((stop ? stop : end) - bytes);
    if (line.count && line.bytes[line.count - 1] == '\r') line.count--;
    if (line.count) TRY(parse_line(file, &line, &capacity));
    bytes = stop ? stop + 1 : end;
  }
  CHECK(file->count, STATUS_DAMAGED, "the file holds no tokens");
  return STATUS_OK;
}

enum status tiktoken_parse(struct tiktoken *file, const char *bytes, size_t count) {
  *file = (struct tiktoken){0};
  enum status status = text_add_bytes(&file->bytes, bytes, count); /* never more than the digits */
  text_clear(&file->bytes);
  if (status == STATUS_OK) status = parse_lines(file, bytes, count);
  if (status != STATUS_OK) tiktoken_free(file);
  TRY(status);
  return STATUS_OK;
}

void tiktoken_free(struct tiktoken *file) {
  free(file->tokens);
  text_free(&file->bytes);
  *file = (struct tiktoken){0};
}
