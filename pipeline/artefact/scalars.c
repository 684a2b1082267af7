#include "pipeline/artefact/scalars.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const struct scalar *scalars_find(const struct scalars *scalars, const char *name) {
  for (int64_t i = 0; i < scalars->count; i++)
    if (strcmp(scalars->items[i].name, name) == 0) return &scalars->items[i];
  return NULL;
}

static enum status add(struct scalars *scalars, const char *name) {
  struct scalar *items =
      realloc(scalars->items, (size_t)(scalars->count + 1) * sizeof *scalars->items);
  CHECK(items, STATUS_ENVIRONMENT, "out of memory: the value '%s'", name);
  scalars->items = items;
  items[scalars->count] = (struct scalar){.name = strdup(name)};
  CHECK(items[scalars->count].name, STATUS_ENVIRONMENT, "out of memory: the value '%s'", name);
  scalars->count++;
  return STATUS_OK;
}

/* The item called `name`, new or emptied. */
static enum status take(struct scalars *scalars, const char *name, struct scalar **item) {
  const struct scalar *known = scalars_find(scalars, name);
  if (!known) {
    TRY(add(scalars, name));
    known = &scalars->items[scalars->count - 1];
  }
  *item = &scalars->items[known - scalars->items];
  free((*item)->text);
  (*item)->text = NULL;
  return STATUS_OK;
}

enum status scalars_set_integer(struct scalars *scalars, const char *name, int64_t value) {
  struct scalar *item;
  TRY(take(scalars, name, &item));
  item->kind = SCALAR_INTEGER;
  item->integer = value;
  return STATUS_OK;
}

enum status scalars_set_real(struct scalars *scalars, const char *name, double value) {
  struct scalar *item;
  TRY(take(scalars, name, &item));
  item->kind = SCALAR_REAL;
  item->real = value;
  return STATUS_OK;
}

enum status scalars_set_text(struct scalars *scalars, const char *name, const char *value) {
  struct scalar *item;
  TRY(take(scalars, name, &item));
  item->kind = SCALAR_TEXT;
  item->text = strdup(value);
  CHECK(item->text, STATUS_ENVIRONMENT, "out of memory: the value '%s'", name);
  return STATUS_OK;
}

static enum status require(const struct scalars *scalars, const char *name, enum scalar_kind kind,
                           const struct scalar **item) {
  static const char *const kinds[] = {"an integer", "a real number", "a text"};
  *item = scalars_find(scalars, name);
  CHECK(*item, STATUS_MISMATCH, "the value '%s' is missing", name);
  CHECK((*item)->kind == kind, STATUS_MISMATCH, "the value '%s' is %s, expected %s", name,
        kinds[(*item)->kind], kinds[kind]);
  return STATUS_OK;
}

enum status scalars_get_integer(const struct scalars *scalars, const char *name, int64_t *value) {
  const struct scalar *item;
  TRY(require(scalars, name, SCALAR_INTEGER, &item));
  *value = item->integer;
  return STATUS_OK;
}

/* Reals that JSON cannot hold are texts. */
static bool special_real(double *value, const char *text) {
  static const struct {
    const char *text;
    double value;
  } specials[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}};
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
    if (strcmp(text, specials[i].text) != 0) continue;
    *value = specials[i].value;
    return true;
  }
  return false;
}

enum status scalars_get_real(const struct scalars *scalars, const char *name, double *value) {
  const struct scalar *item = scalars_find(scalars, name);
  if (item && item->kind == SCALAR_TEXT && special_real(value, item->text)) return STATUS_OK;
  TRY(require(scalars, name, SCALAR_REAL, &item));
  *value = item->real;
  return STATUS_OK;
}

enum status scalars_get_text(const struct scalars *scalars, const char *name, const char **value) {
  const struct scalar *item;
  TRY(require(scalars, name, SCALAR_TEXT, &item));
  *value = item->text;
  return STATUS_OK;
}

static json_t *to_json(const struct scalar *item) {
  if (item->kind == SCALAR_INTEGER) return json_integer(item->integer);
  if (item->kind == SCALAR_TEXT) return json_string(item->text);
  if (isfinite(item->real)) return json_real(item->real);
  return json_string(isnan(item->real) ? "nan" : item->real > 0 ? "inf" : "-inf");
}

enum status scalars_to_json(json_t **object, const struct scalars *scalars) {
  json_t *made = json_object();
  int failed = made == NULL;
  for (int64_t i = 0; i < scalars->count && !failed; i++)
    failed = json_object_set_new(made, scalars->items[i].name, to_json(&scalars->items[i]));
  if (failed) json_decref(made);
  CHECK(!failed, STATUS_ENVIRONMENT, "out of memory, or a value that is not UTF-8");
  *object = made;
  return STATUS_OK;
}

static enum status set_json(struct scalars *scalars, const char *name, const json_t *value,
                            const char *where) {
  if (json_is_integer(value)) return scalars_set_integer(scalars, name, json_integer_value(value));
  if (json_is_real(value)) return scalars_set_real(scalars, name, json_real_value(value));
  CHECK(json_is_string(value), STATUS_DAMAGED, "'%s': '%s' is no number and no text", where, name);
  return scalars_set_text(scalars, name, json_string_value(value));
}

enum status scalars_from_json(struct scalars *scalars, json_t *object, const char *where) {
  const char *name;
  json_t *value;
  CHECK(json_is_object(object), STATUS_DAMAGED, "'%s': the list of values is not an object", where);
  json_object_foreach(object, name, value) TRY(set_json(scalars, name, value, where));
  return STATUS_OK;
}

enum status scalars_copy(struct scalars *to, const struct scalars *from) {
  for (int64_t i = 0; i < from->count; i++) {
    const struct scalar *item = &from->items[i];
    if (item->kind == SCALAR_INTEGER) TRY(scalars_set_integer(to, item->name, item->integer));
    if (item->kind == SCALAR_REAL) TRY(scalars_set_real(to, item->name, item->real));
    if (item->kind == SCALAR_TEXT) TRY(scalars_set_text(to, item->name, item->text));
  }
  return STATUS_OK;
}

void scalars_free(struct scalars *scalars) {
  for (int64_t i = 0; i < scalars->count; i++) {
    free(scalars->items[i].name);
    free(scalars->items[i].text);
  }
  free(scalars->items);
  *scalars = (struct scalars){0};
}
