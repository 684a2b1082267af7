/* What was left out because it is damaged: one JSON object a line,
 *
 *   {"name": "FILE: ENTRY", "byte": 512, "what": "document" | "entry", "reason": "..."}
 *
 * While units are read, each with refusals has its list in FOLDER/parts, beside its parts and
 * complete before the last of them; in the end all are joined, in the order of units, so that
 * the list does not depend on ranks or interruptions.
 */
#ifndef STAGES_TOKENIZE_QUARANTINE_H
#define STAGES_TOKENIZE_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/text.h"
#include "stages/tokenize/document.h"

#define QUARANTINE_NAME "quarantine.jsonl"

/* The list of one unit. Zero-initialise the rest. */
struct quarantine {
  const char *folder; /* of the node; borrowed */
  int64_t unit;
  struct text lines; /* not yet written; owned */
  bool begun;        /* some are written */
};

/* Adds a refusal. Local. WRITE on failure. */
enum status quarantine_add(struct quarantine *list, const struct refusal *refusal);

/* The unit ends: puts its list, if it has one, in its place. Local. WRITE on failure. */
enum status quarantine_end(struct quarantine *list);
void quarantine_free(struct quarantine *list);

/* Joins the lists of units 0 to units - 1 into FOLDER/quarantine.jsonl; *any is false, and no file
 * is written, when there are none. Local. WRITE on failure. */
enum status quarantine_collect(const char *folder, int64_t units, bool *any);

#endif
