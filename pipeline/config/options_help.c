/* The option table for people: --help of a stage, and a table for the documentation. */
#include <stdio.h>

#include "pipeline/config/options.h"

static const char *const type_names[] = {
    [OPTION_TYPE_INTEGER] = "integer",   [OPTION_TYPE_REAL] = "number",
    [OPTION_TYPE_BOOLEAN] = "boolean",   [OPTION_TYPE_TEXT] = "text",
    [OPTION_TYPE_PATH] = "path",         [OPTION_TYPE_CHOICE] = "choice",
    [OPTION_TYPE_INTEGERS] = "integers", [OPTION_TYPE_REALS] = "numbers",
    [OPTION_TYPE_PATHS] = "paths",       [OPTION_TYPE_SETTINGS] = "settings"};

static const char *default_of(const struct option_row *row) {
  if (!row->fallback) return "required";
  return *row->fallback ? row->fallback : "none";
}

/* The words of a choice, or the type and its range: what may be written. */
static enum status add_values(struct text *text, const struct option_row *row,
                              const char *separator) {
  if (!row->choices) TRY(text_add(text, type_names[row->type]));
  for (size_t i = 0; row->choices && row->choices[i]; i++)
    TRY(text_format(text, "%s%s", i ? separator : "", row->choices[i]));
  if (row->min < row->max) TRY(text_format(text, " %.10g..%.10g", row->min, row->max));
  return STATUS_OK;
}

static enum status add_row(struct text *text, const struct option_row *row) {
  TRY(text_format(text, "  %-20s %s\n  %-20s ", row->key, row->help, ""));
  TRY(add_values(text, row, "|"));
  TRY(text_format(text, "%s%s; default: %s", *row->unit ? " " : "", row->unit, default_of(row)));
  if (*row->when) TRY(text_format(text, "; with %s", row->when));
  return text_format(text, "%s\n", row->changes_result ? "" : "; results do not depend on it");
}

enum status options_help(struct text *text, enum kind kind) {
  TRY(text_format(text, "%s: %s\n\nOptions:\n", kind_name(kind), kind_help(kind)));
  for (int i = 0; i < OPTION_COUNT; i++)
    if (options_row((enum option)i)->kinds & (1u << kind))
      TRY(add_row(text, options_row((enum option)i)));
  return STATUS_OK;
}

static enum status document_kinds(struct text *text, unsigned kinds) {
  if (kinds == IN_ALL) return text_add(text, "all");
  const char *separator = "";
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    if (!(kinds & (1u << kind))) continue;
    TRY(text_format(text, "%s%s", separator, kind_name((enum kind)kind)));
    separator = " ";
  }
  return STATUS_OK;
}

static enum status document_row(struct text *text, const struct option_row *row) {
  TRY(text_format(text, "| `%s` | ", row->key));
  TRY(add_values(text, row, ", "));
  TRY(text_format(text, " | %s | %s | ", default_of(row), row->unit));
  TRY(document_kinds(text, row->kinds));
  TRY(text_format(text, "%s", *row->when ? ", with " : ""));
  for (const char *c = row->when; *c; c++) TRY(text_add_bytes(text, *c == '|' ? "/" : c, 1));
  return text_format(text, " | %s | %s |\n", row->changes_result ? "yes" : "no", row->help);
}

enum status options_document(struct text *text) {
  TRY(text_add(text, "| option | values | default | unit | read by | changes results | meaning |\n"
                     "|---|---|---|---|---|---|---|\n"));
  for (int i = 0; i < OPTION_COUNT; i++) TRY(document_row(text, options_row((enum option)i)));
  return STATUS_OK;
}
