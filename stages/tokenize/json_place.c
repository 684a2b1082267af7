#include "stages/tokenize/json_place.h"

#include <stdio.h>
#include <string.h>

struct json_place json_place_top(json_t *root) {
  return (struct json_place){.value = root};
}

struct json_place json_place_member(const struct json_place *object, const char *key) {
  struct json_place place = {.value = json_object_get(object->value, key)};
  if (json_is_null(place.value)) place.value = NULL;
  snprintf(place.path, sizeof place.path, "%.60s%s%.50s", object->path, *object->path ? "." : "",
           key);
  return place;
}

struct json_place json_place_item(const struct json_place *array, size_t index) {
  struct json_place place = {.value = json_array_get(array->value, index)};
  snprintf(place.path, sizeof place.path, "%.90s[%zu]", array->path, index);
  return place;
}

const char *json_place_type(const struct json_place *object) {
  const char *name = json_string_value(json_object_get(object->value, "type"));
  return name ? name : "";
}

static const char *found(const json_t *value) {
  static const char *const names[] = {"an object",      "an array", "a string", "an integer",
                                      "another number", "true",     "false",    "null"};
  return value ? names[json_typeof(value)] : "nothing";
}

enum status json_place_string(const char **string, const struct json_place *place) {
  CHECK(json_is_string(place->value), STATUS_DAMAGED, "%s: expected a string, found %s",
        place->path, found(place->value));
  *string = json_string_value(place->value);
  return STATUS_OK;
}

enum status json_place_integer(int64_t *integer, const struct json_place *place, int64_t low,
                               int64_t high) {
  CHECK(json_is_integer(place->value), STATUS_DAMAGED, "%s: expected an integer, found %s",
        place->path, found(place->value));
  *integer = json_integer_value(place->value);
  CHECK(*integer >= low && *integer <= high, STATUS_DAMAGED,
        "%s: %lld is not between %lld and %lld", place->path, (long long)*integer, (long long)low,
        (long long)high);
  return STATUS_OK;
}

enum status json_place_number(double *number, const struct json_place *place) {
  CHECK(json_is_number(place->value), STATUS_DAMAGED, "%s: expected a number, found %s",
        place->path, found(place->value));
  *number = json_number_value(place->value);
  return STATUS_OK;
}

enum status json_place_list(size_t *count, const struct json_place *place) {
  CHECK(json_is_array(place->value), STATUS_DAMAGED, "%s: expected an array, found %s", place->path,
        found(place->value));
  *count = json_array_size(place->value);
  return STATUS_OK;
}

bool json_place_is(const struct json_place *place, const char *string) {
  const char *value = json_string_value(place->value);
  return value && strcmp(value, string) == 0;
}

enum status json_place_must_be_unset(const struct json_place *place) {
  CHECK(!place->value || json_is_false(place->value) || json_place_is(place, ""), STATUS_MISMATCH,
        "%s is set, which changes ids in a way that is not covered; expected null or false",
        place->path);
  return STATUS_OK;
}
