/* Documents: what readers give and the stage takes. */
#ifndef STAGES_TOKENIZE_DOCUMENT_H
#define STAGES_TOKENIZE_DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"

/* The largest document; what is larger is refused (choose another boundary), so that the memory of
 * a reader is bounded. */
enum { DOCUMENT_BYTES = 256 << 20 };

/* Takes one document, never an empty one. The bytes are borrowed until it returns. A status other
 * than OK ends the reading and is passed on. */
struct document_sink {
  enum status (*add)(void *state, const char *bytes, size_t count);
  void *state;
};

#endif
