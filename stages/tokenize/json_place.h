/* Values of a JSON file and how they are reached, so that every complaint names the place. */
#ifndef STAGES_TOKENIZE_JSON_PLACE_H
#define STAGES_TOKENIZE_JSON_PLACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

struct json_place {
  json_t *value;  /* borrowed; NULL when it is not there, or null */
  char path[120]; /* such as "model.vocab[7]" */
};

/* The top of a file, a member of an object, an item of an array. Local. */
struct json_place json_place_top(json_t *root);
struct json_place json_place_member(const struct json_place *object, const char *key);
struct json_place json_place_item(const struct json_place *array, size_t index);

/* The string `type` of an object; "" where there is none. Borrowed. Local. */
const char *json_place_type(const struct json_place *object);

/* Reads a value. Local. DAMAGED with the place when it is of another type or missing; integers also
 * when they are not in [low, high]. */
enum status json_place_string(const char **string, const struct json_place *place);
enum status json_place_integer(int64_t *integer, const struct json_place *place, int64_t low,
                               int64_t high);
enum status json_place_number(double *number, const struct json_place *place);
enum status json_place_list(size_t *count, const struct json_place *place);

/* Whether a value is the string; missing ones are not. Local. */
bool json_place_is(const struct json_place *place, const char *string);

/* Refuses a value that changes ids in a way that is not covered: it must be missing, null, false or
 * an empty string. Local. MISMATCH with the place. */
enum status json_place_must_be_unset(const struct json_place *place);

#endif
