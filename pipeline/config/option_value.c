/* Values of options between their written form and the members of struct options. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/config/options.h"

static void *member(struct options *options, const struct option_row *row) {
  return (char *)options + row->offset;
}

static bool has_range(const struct option_row *row) {
  return row->min < row->max;
}

/* "an integer from 1 to 100 steps", "one of: a b", ... */
static const char *expectation(char out[512], const struct option_row *row) {
  static const char *const words[] = {
      [OPTION_TYPE_INTEGER] = "an integer",    [OPTION_TYPE_REAL] = "a number",
      [OPTION_TYPE_BOOLEAN] = "true or false", [OPTION_TYPE_TEXT] = "a text",
      [OPTION_TYPE_PATH] = "a path",           [OPTION_TYPE_CHOICE] = "one of:",
      [OPTION_TYPE_INTEGERS] = "integers",     [OPTION_TYPE_REALS] = "numbers",
      [OPTION_TYPE_PATHS] = "paths",           [OPTION_TYPE_SETTINGS] = "settings"};
  int used = snprintf(out, 512, "%s", words[row->type]);
  if (has_range(row))
    used += snprintf(out + used, 512 - (size_t)used, " from %.10g to %.10g", row->min, row->max);
  if (has_range(row) && *row->unit) snprintf(out + used, 512 - (size_t)used, " (%s)", row->unit);
  for (size_t i = 0; row->choices && row->choices[i] && used < 480; i++)
    used += snprintf(out + used, 512 - (size_t)used, " %s", row->choices[i]);
  return out;
}

static enum status refuse(const struct option_row *row, const char *where, const char *found) {
  char expected[512];
  const char *nearest = NULL;
  size_t count = 0;
  while (row->choices && row->choices[count]) count++;
  if (count) nearest = text_nearest(found, row->choices, count);
  FAIL(STATUS_MISMATCH, "%s: %s: expected %s, found '%s'%s%s%s", where, row->key,
       expectation(expected, row), found, nearest ? "; did you mean '" : "", nearest ? nearest : "",
       nearest ? "'?" : "");
}

static bool in_range(const struct option_row *row, double value) {
  return !has_range(row) || (value >= row->min && value <= row->max);
}

static enum status set_integer(int64_t *out, const struct option_row *row, const char *item,
                               const char *where) {
  int64_t value;
  if (!text_parse_integer(&value, item) || !in_range(row, (double)value))
    return refuse(row, where, item);
  *out = value;
  return STATUS_OK;
}

static enum status set_real(double *out, const struct option_row *row, const char *item,
                            const char *where) {
  double value;
  if (!text_parse_real(&value, item) || !isfinite(value) || !in_range(row, value))
    return refuse(row, where, item);
  *out = value;
  return STATUS_OK;
}

static enum status set_boolean(bool *out, const struct option_row *row, const char *item,
                               const char *where) {
  *out = strcmp(item, "true") == 0;
  return *out || strcmp(item, "false") == 0 ? STATUS_OK : refuse(row, where, item);
}

static enum status set_choice(void *out, const struct option_row *row, const char *item,
                              const char *where) {
  for (unsigned i = 0; row->choices[i]; i++) {
    if (strcmp(row->choices[i], item) != 0) continue;
    memcpy(out, &i, sizeof i);
    return STATUS_OK;
  }
  return refuse(row, where, item);
}

static enum status set_text(const char **out, const struct option_row *row, const char *item,
                            const char *where) {
  CHECK(text_valid_utf8(item, strlen(item)) == strlen(item), STATUS_MISMATCH,
        "%s: %s: the value is not valid UTF-8", where, row->key);
  *out = item;
  return STATUS_OK;
}

static enum status set_scalar(struct options *options, const struct option_row *row,
                              const char *item, const char *where) {
  void *out = member(options, row);
  switch (row->type) {
  case OPTION_TYPE_INTEGER:
    return set_integer(out, row, item, where);
  case OPTION_TYPE_REAL:
    return set_real(out, row, item, where);
  case OPTION_TYPE_BOOLEAN:
    return set_boolean(out, row, item, where);
  case OPTION_TYPE_CHOICE:
    return set_choice(out, row, item, where);
  default:
    return set_text(out, row, item, where);
  }
}

static enum status set_settings(struct option_settings *out, const struct option_row *row,
                                struct option_text value) {
  const char *valid;
  for (size_t i = 0; i < value.count; i++) TRY(set_text(&valid, row, value.items[i], value.where));
  *out = (struct option_settings){value.count, value.items};
  return STATUS_OK;
}

static enum status set_list(struct options *options, const struct option_row *row,
                            struct option_text value) {
  CHECK(value.count > 0, STATUS_MISMATCH, "%s: %s: the list is empty", value.where, row->key);
  if (row->type == OPTION_TYPE_SETTINGS) return set_settings(member(options, row), row, value);
  CHECK(value.count <= OPTION_ITEMS, STATUS_MISMATCH, "%s: %s: %zu items, the limit is %d",
        value.where, row->key, value.count, OPTION_ITEMS);
  struct option_integers *integers = member(options, row);
  struct option_reals *reals = member(options, row);
  struct option_texts *texts = member(options, row);
  for (size_t i = 0; i < value.count; i++) {
    if (row->type == OPTION_TYPE_INTEGERS)
      TRY(set_integer(&integers->values[i], row, value.items[i], value.where));
    else if (row->type == OPTION_TYPE_REALS)
      TRY(set_real(&reals->values[i], row, value.items[i], value.where));
    else
      TRY(set_text(&texts->values[i], row, value.items[i], value.where));
  }
  *(size_t *)member(options, row) = value.count; /* the first member of each */
  return STATUS_OK;
}

enum status options_set(struct options *options, enum option option, struct option_text value) {
  const struct option_row *row = options_row(option);
  if (row->type >= OPTION_TYPE_INTEGERS) return set_list(options, row, value);
  CHECK(!value.is_list && value.count == 1, STATUS_MISMATCH,
        "%s: %s: expected one value, found a list", value.where, row->key);
  return set_scalar(options, row, value.items[0], value.where);
}

static enum status format_real(struct text *text, double value) {
  char digits[40];
  for (int precision = 15; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (strtod(digits, NULL) == value) break;
  }
  return text_add(text, digits);
}

/* Bytes at `at` that are a character which YAML refuses or takes for a line break, and the
 * character; 0 for others. Behind a zero byte nothing is read. */
static size_t unprintable(unsigned *code, const unsigned char *at) {
  *code = at[0];
  if (at[0] < 0x20 || at[0] == 0x7f) return 1;
  if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) {
    *code = at[1]; /* the other control characters */
    return 2;
  }
  if ((at[0] & 0xf0) != 0xe0 || (at[1] & 0xc0) != 0x80 || (at[2] & 0xc0) != 0x80) return 0;
  *code = (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
  const bool breaks = *code == 0x2028 || *code == 0x2029;
  return breaks || *code == 0xfeff || *code >= 0xfffe ? 3 : 0;
}

/* A double-quoted YAML scalar. */
static enum status format_text(struct text *text, const char *value) {
  TRY(text_add(text, "\""));
  while (*value) {
    unsigned code;
    const size_t bytes = unprintable(&code, (const unsigned char *)value);
    if (bytes)
      TRY(text_format(text, "\\u%04x", code));
    else if (*value == '"' || *value == '\\')
      TRY(text_format(text, "\\%c", *value));
    else
      TRY(text_add_bytes(text, value, 1));
    value += bytes ? bytes : 1;
  }
  return text_add(text, "\"");
}

static enum status format_scalar(struct text *text, const struct options *options,
                                 enum option option) {
  const struct option_row *row = options_row(option);
  const char *value = (const char *)options + row->offset;
  switch (row->type) {
  case OPTION_TYPE_INTEGER:
    return text_format(text, "%lld", (long long)*(const int64_t *)(const void *)value);
  case OPTION_TYPE_REAL:
    return format_real(text, *(const double *)(const void *)value);
  case OPTION_TYPE_BOOLEAN:
    return text_add(text, *(const bool *)value ? "true" : "false");
  case OPTION_TYPE_CHOICE:
    return text_add(text, options_choice(options, option));
  default:
    return format_text(text, *(const char *const *)(const void *)value);
  }
}

static enum status format_list(struct text *text, const struct options *options,
                               const struct option_row *row) {
  const void *value = (const char *)options + row->offset;
  const struct option_integers *integers = value;
  const struct option_reals *reals = value;
  const struct option_texts *texts = value;
  const struct option_settings *settings = value;
  TRY(text_add(text, "["));
  for (size_t i = 0; i < *(const size_t *)value; i++) {
    if (i) TRY(text_add(text, ", "));
    if (row->type == OPTION_TYPE_INTEGERS)
      TRY(text_format(text, "%lld", (long long)integers->values[i]));
    else if (row->type == OPTION_TYPE_REALS)
      TRY(format_real(text, reals->values[i]));
    else
      TRY(format_text(text,
                      row->type == OPTION_TYPE_SETTINGS ? settings->values[i] : texts->values[i]));
  }
  return text_add(text, "]");
}

enum status options_format(struct text *text, const struct options *options, enum option option) {
  const struct option_row *row = options_row(option);
  if (row->type >= OPTION_TYPE_INTEGERS) return format_list(text, options, row);
  return format_scalar(text, options, option);
}
