/* Documents: what readers give and the stage takes. */
#ifndef STAGES_TOKENIZE_DOCUMENT_H
#define STAGES_TOKENIZE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"

/* The largest document; what is larger is refused (choose another boundary), so that the memory of
 * a reader is bounded. */
enum { DOCUMENT_BYTES = 256 << 20 };

/* A source and the target that belongs to it. */
struct document_pair {
  const char *source, *target;
  size_t source_count, target_count;
};

/* Equal for equal pairs; `low` is a function of the source alone, so that all targets of a source
 * fall on the same side of the held-out split. Local. */
struct hash128 document_pair_hash(const struct document_pair *pair);

/* What was left out because it is damaged: a document, or all of an entry or file from a byte on.
 * Borrowed until the call returns. */
struct refusal {
  const char *name; /* of the file, or "FILE: ENTRY" */
  uint64_t offset;
  const char *reason;
  bool document;
};

/* Takes one document, never an empty one; or, where `add_pair` is set, one pair, neither side
 * empty. The bytes are borrowed until it returns. A status other than OK ends the reading and is
 * passed on. */
struct document_sink {
  enum status (*add)(void *state, const char *bytes, size_t count);
  void *state;
  enum status (*add_pair)(void *state, const struct document_pair *pair);
  enum status (*refuse)(void *state, const struct refusal *refusal); /* NULL: damage ends it */
};

#endif
