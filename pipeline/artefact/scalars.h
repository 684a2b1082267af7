/* A small ordered list of named values: integers, reals and strings. The state of a checkpoint
 * (step, seed, schedules, counts) and the facts of a manifest. In JSON: one object. Reals keep
 * every bit, infinities and NaN included (written as the strings "inf", "-inf", "nan").
 */
#ifndef PIPELINE_ARTEFACT_SCALARS_H
#define PIPELINE_ARTEFACT_SCALARS_H

#include <stdint.h>

#include "pipeline/base/error.h"

struct json_t;

enum scalar_kind { SCALAR_INTEGER, SCALAR_REAL, SCALAR_TEXT };

struct scalar {
  char *name; /* owned */
  enum scalar_kind kind;
  int64_t integer;
  double real;
  char *text; /* owned; for SCALAR_TEXT */
};

/* Zero-initialise. */
struct scalars {
  int64_t count;
  struct scalar *items; /* owned */
};

/* Sets a value, replacing one of the same name. Local. ENVIRONMENT when memory is out. */
enum status scalars_set_integer(struct scalars *scalars, const char *name, int64_t value);
enum status scalars_set_real(struct scalars *scalars, const char *name, double value);
enum status scalars_set_text(struct scalars *scalars, const char *name, const char *value);

/* Gets a value. Local. MISMATCH when it is missing or of another kind; the name is given. */
enum status scalars_get_integer(const struct scalars *scalars, const char *name, int64_t *value);
enum status scalars_get_real(const struct scalars *scalars, const char *name, double *value);
enum status scalars_get_text(const struct scalars *scalars, const char *name, const char **value);

/* The value called `name`, or NULL. Borrowed. Local. */
const struct scalar *scalars_find(const struct scalars *scalars, const char *name);

/* To and from a JSON object. `where` is for messages. The returned object is new. Local. DAMAGED
 * for anything but integers, reals and strings. */
enum status scalars_to_json(struct json_t **object, const struct scalars *scalars);
enum status scalars_from_json(struct scalars *scalars, struct json_t *object, const char *where);

/* Adds copies of all of `from` to `to`. Local. ENVIRONMENT when memory is out. */
enum status scalars_copy(struct scalars *to, const struct scalars *from);

void scalars_free(struct scalars *scalars);

#endif
