#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "stages/evaluate/choices.h"

/* One question while it is read. */
struct reader {
  struct choices *choices;
  struct tokenizer *tokenizer;
  const char *path;
  int64_t line;
  int32_t pad;
  struct tokens context, whole;
};

static enum status grow(struct choices *choices) {
  const size_t rows = (size_t)choices->rows + 1;
  int32_t *tokens =
      realloc(choices->tokens, rows * (size_t)choices->positions * sizeof *tokens);
  if (tokens) choices->tokens = tokens;
  int32_t *lengths = realloc(choices->lengths, rows * sizeof *lengths);
  if (lengths) choices->lengths = lengths;
  int64_t *prefix = realloc(choices->prefix, rows * sizeof *prefix);
  if (prefix) choices->prefix = prefix;
  int64_t *question = realloc(choices->question, rows * sizeof *question);
  if (question) choices->question = question;
  bool *correct = realloc(choices->correct, rows * sizeof *correct);
  if (correct) choices->correct = correct;
  CHECK(tokens && lengths && prefix && question && correct, STATUS_ENVIRONMENT,
        "out of memory: %zu options of questions", rows);
  return STATUS_OK;
}

/* The ids of context and option together: a tokenizer may join the two. */
static enum status encode(struct reader *reader, const char *context, const char *option) {
  struct text text = {0};
  reader->whole.count = 0;
  enum status status = text_format(&text, "%s%s", context, option);
  if (status == STATUS_OK)
    status = tokenizer_encode(reader->tokenizer, &reader->whole, text.bytes, text.length);
  text_free(&text);
  return status;
}

static size_t common(const struct reader *reader) {
  size_t i = 0;
  while (i < reader->context.count && i < reader->whole.count &&
         reader->context.ids[i] == reader->whole.ids[i])
    i++;
  return i;
}

/* Adds a row: as much of the context's end as there is room for, and the option. */
static enum status add_row(struct reader *reader, int64_t option, bool correct) {
  struct choices *choices = reader->choices;
  const size_t T = (size_t)choices->positions, prefix = common(reader);
  const size_t scored = reader->whole.count - prefix;
  CHECK(scored > 0 && scored < T, STATUS_MISMATCH,
        "'%s' line %lld: option %lld has %zu tokens, expected 1 to %zu: rows have %zu positions",
        reader->path, (long long)reader->line, (long long)option, scored, T - 1, T);
  TRY(grow(choices));
  const size_t kept = prefix + scored <= T ? prefix : T - scored;
  int32_t *row = choices->tokens + (size_t)choices->rows * T;
  for (size_t i = 0; i < T; i++) row[i] = reader->pad;
  memcpy(row, reader->whole.ids + prefix - kept, (kept + scored) * sizeof *row);
  choices->lengths[choices->rows] = (int32_t)(kept + scored);
  choices->prefix[choices->rows] = (int64_t)kept;
  choices->question[choices->rows] = choices->questions;
  choices->correct[choices->rows++] = correct;
  return STATUS_OK;
}

static enum status read_question(struct reader *reader, const json_t *object) {
  const char *context = json_string_value(json_object_get(object, "context"));
  const json_t *options = json_object_get(object, "options"), *answer =
                                                                 json_object_get(object, "answer");
  const size_t count = json_array_size(options);
  CHECK(context && count >= 2 && json_is_integer(answer) && json_integer_value(answer) >= 0 &&
            json_integer_value(answer) < (json_int_t)count,
        STATUS_MISMATCH,
        "'%s' line %lld: expected {\"context\": TEXT, \"options\": [two or more TEXTs], "
        "\"answer\": the right one's place from 0}",
        reader->path, (long long)reader->line);
  reader->context.count = 0;
  TRY(tokenizer_encode(reader->tokenizer, &reader->context, context, strlen(context)));
  for (size_t i = 0; i < count; i++) {
    const char *option = json_string_value(json_array_get(options, i));
    CHECK(option, STATUS_MISMATCH, "'%s' line %lld: option %zu is not a text", reader->path,
          (long long)reader->line, i);
    TRY(encode(reader, context, option));
    TRY(add_row(reader, (int64_t)i, (json_int_t)i == json_integer_value(answer)));
  }
  reader->choices->questions++;
  return STATUS_OK;
}

static enum status read_line(struct reader *reader, const char *line, size_t length) {
  json_error_t problem;
  if (length == 0) return STATUS_OK;
  json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
  CHECK(object, STATUS_MISMATCH, "'%s' line %lld: not JSON (%s)", reader->path,
        (long long)reader->line, problem.text);
  const enum status status = read_question(reader, object);
  json_decref(object);
  return status;
}

static enum status read_lines(struct reader *reader, const struct text *bytes) {
  for (size_t at = 0; at < bytes->length;) {
    const char *line = bytes->bytes + at, *end = memchr(line, '\n', bytes->length - at);
    const size_t length = end ? (size_t)(end - line) : bytes->length - at;
    reader->line++;
    TRY(read_line(reader, line, length));
    at += length + 1;
  }
  CHECK(reader->choices->questions > 0, STATUS_MISMATCH, "'%s': no questions", reader->path);
  return STATUS_OK;
}

enum status choices_read(struct choices *choices, struct tokenizer *tokenizer, int64_t positions,
                         int32_t pad, const char *path) {
  struct text bytes = {0};
  struct reader reader = {.choices = choices,
                          .tokenizer = tokenizer,
                          .path = path,
                          .pad = pad >= 0 ? pad : 0};
  choices->positions = positions;
  TRY(file_read(&bytes, path));
  const enum status status = read_lines(&reader, &bytes);
  tokens_free(&reader.context);
  tokens_free(&reader.whole);
  text_free(&bytes);
  return status;
}

void choices_free(struct choices *choices) {
  free(choices->tokens);
  free(choices->lengths);
  free(choices->prefix);
  free(choices->question);
  free(choices->correct);
  *choices = (struct choices){0};
}
