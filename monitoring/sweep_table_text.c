/* The table of a sweep in its written forms. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "monitoring/chart.h"
#include "monitoring/sweep_table.h"

enum { SHOWN_OUTCOMES = 8, CELL_BYTES = 48 };

static const char *state_of(char out[CELL_BYTES + RECIPE_NAME_BYTES],
                            const struct sweep_standing *standing) {
  static const char *const names[SWEEP_STATES] = {
      [SWEEP_FINISHED] = "finished", [SWEEP_RUNNING] = "running", [SWEEP_TO_BE_MADE] = "not made"};
  if (standing->state != SWEEP_FAILED) return names[standing->state];
  snprintf(out, CELL_BYTES + RECIPE_NAME_BYTES, "exit %d of %s", standing->exit_code,
           standing->node);
  return out;
}

static const char *value_of(char out[CELL_BYTES], const struct sweep_row *row, const char *name,
                            const char *format) {
  const struct outcome *outcome = outcomes_find(&row->outcomes, name);
  if (!outcome || !isfinite(outcome->value)) return "";
  snprintf(out, CELL_BYTES, format, outcome->value);
  return out;
}

/* A cell, quoted where it has to be. */
static enum status add_cell(struct text *text, const char *value) {
  TRY(text_add(text, ","));
  if (!strpbrk(value, ",\"\n")) return text_add(text, value);
  TRY(text_add(text, "\""));
  for (; *value; value++) TRY(text_add(text, *value == '"' ? "\"\"" : (char[]){*value, 0}));
  return text_add(text, "\"");
}

enum status sweep_table_csv(struct text *text, const struct sweep_table *table) {
  const struct sweep *sweep = &table->of->sweep;
  TRY(text_add(text, "place,configuration"));
  for (size_t k = 0; k < sweep->key_count; k++) TRY(add_cell(text, sweep->keys[k]));
  TRY(add_cell(text, "state"));
  for (size_t c = 0; c < table->column_count; c++) TRY(add_cell(text, table->columns[c]));
  TRY(text_add(text, "\n"));
  for (size_t i = 0; i < sweep->count; i++) {
    const struct sweep_row *row = &table->rows[i];
    const struct sweep_configuration *configuration = &sweep->configurations[row->configuration];
    char state[CELL_BYTES + RECIPE_NAME_BYTES], cell[CELL_BYTES];
    TRY(text_format(text, "%zu,%s", i + 1, configuration->name));
    for (size_t k = 0; k < sweep->key_count; k++)
      TRY(add_cell(text, configuration->values[k] ? configuration->values[k] : ""));
    TRY(add_cell(text, state_of(state, &row->standing)));
    for (size_t c = 0; c < table->column_count; c++)
      TRY(add_cell(text, value_of(cell, row, table->columns[c], "%.17g")));
    TRY(text_add(text, "\n"));
  }
  return STATUS_OK;
}

static size_t shown(const struct sweep_table *table) {
  return table->column_count < SHOWN_OUTCOMES ? table->column_count : SHOWN_OUTCOMES;
}

static enum status markdown_head(struct text *text, const struct sweep_table *table) {
  const struct sweep *sweep = &table->of->sweep;
  const struct options *options = &table->of->node->options;
  TRY(text_format(text, "%s: %zu configurations", table->of->node->name, sweep->count));
  if (*options->metric)
    TRY(text_format(text, ", by %s, %s first", options->metric,
                    options->goal == GOAL_HIGHEST ? "highest" : "lowest"));
  TRY(text_add(text, "\n\n| |"));
  for (size_t k = 0; k < sweep->key_count; k++) TRY(text_format(text, " %s |", sweep->keys[k]));
  for (size_t c = 0; c < shown(table); c++) TRY(text_format(text, " %s |", table->columns[c]));
  TRY(text_add(text, " state |\n|---|"));
  for (size_t i = 0; i < sweep->key_count + shown(table); i++) TRY(text_add(text, "---|"));
  return text_add(text, "---|\n");
}

enum status sweep_table_markdown(struct text *text, const struct sweep_table *table) {
  const struct sweep *sweep = &table->of->sweep;
  TRY(markdown_head(text, table));
  for (size_t i = 0; i < sweep->count; i++) {
    const struct sweep_row *row = &table->rows[i];
    const char **values = sweep->configurations[row->configuration].values;
    char state[CELL_BYTES + RECIPE_NAME_BYTES], cell[CELL_BYTES];
    TRY(text_format(text, "| %zu |", i + 1));
    for (size_t k = 0; k < sweep->key_count; k++)
      TRY(text_format(text, " %s |", values[k] ? values[k] : ""));
    for (size_t c = 0; c < shown(table); c++)
      TRY(text_format(text, " %s |", value_of(cell, row, table->columns[c], "%.5g")));
    TRY(text_format(text, " %s |\n", state_of(state, &row->standing)));
  }
  if (shown(table) < table->column_count)
    TRY(text_format(text, "\n%zu more outcomes are in " SWEEP_TABLE_CSV ".\n",
                    table->column_count - shown(table)));
  return STATUS_OK;
}

/* Reads the cell at `at`: its text, and what stands behind it. */
static enum status read_cell(struct text *cell, const char **at) {
  const char *start = *at;
  TRY(text_add(cell, ""));
  if (*start != '"') {
    const size_t length = strcspn(start, ",\n");
    *at += length;
    return text_add_bytes(cell, start, length);
  }
  for (++*at;; ++*at) {
    CHECK(**at, STATUS_DAMAGED, "a quoted cell of a table has no end: %.40s", start);
    if (**at == '"' && (*at)[1] != '"') break;
    if (**at == '"') ++*at;
    TRY(text_add_bytes(cell, *at, 1));
  }
  ++*at;
  return STATUS_OK;
}

enum status sweep_table_html(struct text *html, const char *csv) {
  struct text cell = {0};
  enum status status = STATUS_OK;
  const char *tag = "th";
  for (; *csv && status == STATUS_OK; tag = "td") {
    status = text_add(html, "<tr>");
    do {
      text_clear(&cell);
      csv += *csv == ',';
      if (status == STATUS_OK) status = read_cell(&cell, &csv);
      if (status == STATUS_OK) status = text_format(html, "<%s>", tag);
      if (status == STATUS_OK) status = chart_escape(html, cell.bytes);
      if (status == STATUS_OK) status = text_format(html, "</%s>", tag);
    } while (status == STATUS_OK && *csv == ',');
    if (status == STATUS_OK) status = text_add(html, "</tr>\n");
    csv += *csv == '\n';
  }
  text_free(&cell);
  return status;
}
