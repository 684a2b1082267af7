/* Curves read from metrics.jsonl files: one for each number that the records of an event carry. */
#ifndef MONITORING_CURVES_H
#define MONITORING_CURVES_H

#include <stddef.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

struct curve {
  char *node;       /* owned */
  char *event;      /* owned: "train", "validation" */
  char *key;        /* owned: "loss", or "losses.ce" for a number inside a group */
  struct text x, y; /* arrays of doubles: steps and values */
};

/* Zero-initialise. */
struct curves {
  struct curve *items; /* owned */
  size_t count;
};

/* Adds the curves of one file; a file that does not exist adds none. Local. DAMAGED with file and
 * line when a record is not JSON. */
enum status curves_read(struct curves *curves, const char *node, const char *path);
void curves_free(struct curves *curves);

/* The curve of a node, or NULL. Borrowed. Local. */
const struct curve *curves_find(const struct curves *curves, const char *node, const char *event,
                                const char *key);

static inline size_t curve_count(const struct curve *curve) {
  return curve->x.length / sizeof(double);
}

#endif
