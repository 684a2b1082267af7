#include "monitoring/curves.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"

enum { KEY_BYTES = 128 };

/* Where the numbers of one record go. */
struct record_place {
  struct curves *curves;
  const char *node, *event;
  double step;
};

static enum status copy_name(char **copy, const char *name) {
  const size_t bytes = strlen(name) + 1;
  *copy = malloc(bytes);
  CHECK(*copy, STATUS_ENVIRONMENT, "out of memory: the name '%s'", name);
  memcpy(*copy, name, bytes);
  return STATUS_OK;
}

const struct curve *curves_find(const struct curves *curves, const char *node, const char *event,
                                const char *key) {
  for (size_t i = 0; i < curves->count; i++) {
    const struct curve *curve = &curves->items[i];
    if (strcmp(curve->node, node) == 0 && strcmp(curve->event, event) == 0 &&
        strcmp(curve->key, key) == 0)
      return curve;
  }
  return NULL;
}

static enum status add_curve(const struct record_place *place, const char *key,
                             struct curve **added) {
  struct curves *curves = place->curves;
  struct curve *items = realloc(curves->items, (curves->count + 1) * sizeof *items);
  CHECK(items, STATUS_ENVIRONMENT, "out of memory: %zu curves", curves->count + 1);
  curves->items = items;
  *added = &items[curves->count++];
  **added = (struct curve){0};
  TRY(copy_name(&(*added)->node, place->node));
  TRY(copy_name(&(*added)->event, place->event));
  return copy_name(&(*added)->key, key);
}

static enum status add_point(const struct record_place *place, const char *key, double value) {
  struct curve *curve =
      (struct curve *)(uintptr_t)curves_find(place->curves, place->node, place->event, key);
  if (!curve) TRY(add_curve(place, key, &curve));
  TRY(text_add_bytes(&curve->x, &place->step, sizeof place->step));
  return text_add_bytes(&curve->y, &value, sizeof value);
}

/* A number, or one of the strings that stand for what JSON has no number for. */
static bool read_number(double *value, const json_t *json) {
  const char *string = json_string_value(json);
  if (json_is_number(json))
    *value = json_number_value(json);
  else if (string && strcmp(string, "nan") == 0)
    *value = (double)NAN;
  else if (string && strcmp(string, "inf") == 0)
    *value = (double)INFINITY;
  else if (string && strcmp(string, "-inf") == 0)
    *value = -(double)INFINITY;
  else
    return false;
  return true;
}

static enum status add_numbers(const struct record_place *place, json_t *object,
                               const char *group) {
  const char *key;
  json_t *json;
  json_object_foreach(object, key, json) {
    char full[KEY_BYTES];
    double value;
    if (!*group && strcmp(key, "step") == 0) continue;
    snprintf(full, sizeof full, "%s%s%s", group, *group ? "." : "", key);
    if (json_is_object(json) && !*group) TRY(add_numbers(place, json, key));
    if (read_number(&value, json)) TRY(add_point(place, full, value));
  }
  return STATUS_OK;
}

static enum status add_line(struct curves *curves, const char *node, const char *line, size_t bytes,
                            const char *path, int number) {
  json_error_t problem;
  json_t *record = json_loadb(line, bytes, 0, &problem);
  CHECK(record, STATUS_DAMAGED, "'%s' line %d: not a JSON record (%s)", path, number, problem.text);
  const char *event = json_string_value(json_object_get(record, "event"));
  const struct record_place place = {
      .curves = curves,
      .node = node,
      .event = event ? event : "",
      .step = json_number_value(json_object_get(record, "step")),
  };
  const enum status status = add_numbers(&place, record, "");
  json_decref(record);
  return status;
}

enum status curves_read(struct curves *curves, const char *node, const char *path) {
  struct text bytes = {0};
  if (!file_exists(path)) return STATUS_OK;
  enum status status = file_read(&bytes, path);
  const char *line = bytes.bytes;
  for (int number = 1; status == STATUS_OK && line && *line; number++) {
    const char *end = strchr(line, '\n');
    if (!end) break; /* a record that is being written */
    status = add_line(curves, node, line, (size_t)(end - line), path, number);
    line = end + 1;
  }
  text_free(&bytes);
  return status;
}

void curves_free(struct curves *curves) {
  for (size_t i = 0; i < curves->count; i++) {
    struct curve *curve = &curves->items[i];
    free(curve->node);
    free(curve->event);
    free(curve->key);
    text_free(&curve->x);
    text_free(&curve->y);
  }
  free(curves->items);
  *curves = (struct curves){0};
}
