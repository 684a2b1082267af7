#include "stages/sample/unit_writer.h"

enum { COLUMNS = 6 };

/* Columns of a unit, in their order. */
struct columns {
  struct store_writer_column items[COLUMNS];
  int64_t count;
};

static void add_column(struct columns *columns, const char *name, enum dtype dtype, bool ragged,
                       int64_t width) {
  columns->items[columns->count++] = (struct store_writer_column){
      .name = name, .dtype = dtype, .dimensions = 1, .shape = {width}, .ragged = ragged};
}

static struct columns columns_of(const struct unit_texts *texts) {
  struct columns columns = {.count = 0};
  const bool pairs = texts->pairs;
  add_column(&columns, "tokens", DTYPE_I32, pairs, texts->positions);
  add_column(&columns, "text", DTYPE_U8, true, 0);
  if (texts->confidence) add_column(&columns, "confidence", DTYPE_F32, pairs, texts->positions);
  if (texts->calls) add_column(&columns, "calls", DTYPE_I32, false, 1);
  if (pairs) add_column(&columns, "source", DTYPE_U8, true, 0);
  if (pairs) add_column(&columns, "reference", DTYPE_U8, true, 0);
  return columns;
}

/* A unit being written: rows go to columns in their order. */
struct unit_writer {
  const struct unit_texts *texts;
  struct store_writer writer;
  struct text *scratch;
  int64_t column;
};

static enum status add(struct unit_writer *unit, const void *elements, int64_t count) {
  return store_writer_add(&unit->writer, unit->column++, elements, count);
}

static enum status add_text(struct unit_writer *unit, const int32_t *ids, int64_t count) {
  text_clear(unit->scratch);
  TRY(tokenizer_decode(unit->texts->tokenizer, unit->scratch, ids, (size_t)count));
  return add(unit, unit->scratch->bytes, (int64_t)unit->scratch->length);
}

/* Positions of row i that are written. */
static struct split written(const struct unit_texts *texts, int64_t i) {
  const int64_t T = texts->positions;
  const int32_t *row = texts->tokens + i * T;
  if (!texts->pairs) return (struct split){0, T};
  struct split span = {texts->pairs->sources[i], texts->pairs->sources[i]};
  while (span.end < T && row[span.end] != texts->end) span.end++;
  return span;
}

static enum status add_pair(struct unit_writer *unit, int64_t i) {
  const struct token_rows *rows = unit->texts->pairs;
  const int32_t *row = rows->tokens + i * rows->positions;
  TRY(add_text(unit, row, rows->sources[i]));
  return add_text(unit, row + rows->sources[i], rows->lengths[i] - rows->sources[i]);
}

static enum status add_row(struct unit_writer *unit, int64_t i) {
  const struct unit_texts *texts = unit->texts;
  const struct split span = written(texts, i);
  const int64_t first = i * texts->positions + span.begin, count = split_count(span);
  unit->column = 0;
  TRY(add(unit, texts->tokens + first, count));
  TRY(add_text(unit, texts->tokens + first, count));
  if (texts->confidence) TRY(add(unit, texts->confidence + first, count));
  if (texts->calls) TRY(add(unit, texts->calls + i, 1));
  return texts->pairs ? add_pair(unit, i) : STATUS_OK;
}

enum status unit_write(const struct unit_texts *texts, const struct store_writer_options *options,
                       struct text *scratch) {
  const struct columns columns = columns_of(texts);
  struct unit_writer unit = {.texts = texts, .scratch = scratch};
  struct store_writer_options all = *options;
  enum status status = STATUS_OK;
  all.columns = columns.items;
  all.column_count = columns.count;
  TRY(store_writer_open(&unit.writer, &all));
  for (int64_t i = 0; i < texts->count && status == STATUS_OK; i++) status = add_row(&unit, i);
  if (status == STATUS_OK) status = store_writer_close(&unit.writer);
  store_writer_abandon(&unit.writer);
  TRY(status);
  return STATUS_OK;
}
