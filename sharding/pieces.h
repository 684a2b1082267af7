/* Arrays of floats that come and go, in memory that is kept: what is returned is handed out again,
 * and more is asked of the system only when nothing fits.
 */
#ifndef SHARDING_PIECES_H
#define SHARDING_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum { PIECES_SLABS = 256 };

/* Heads a span of a slab; the floats follow. */
struct pieces_span {
  _Alignas(ARENA_ALIGNMENT) int64_t bytes; /* of the span, its head included */
  int64_t taken;                           /* 1 or 0 */
};

struct pieces {
  const char *account; /* borrowed */
  struct arena slabs[PIECES_SLABS];
  int64_t count;
};

/* No memory yet. Local. */
void pieces_init(struct pieces *pieces, const char *account);

/* Returns all memory to the system. Accepts zeroed pieces. Local. */
void pieces_free(struct pieces *pieces);

/* *piece = `count` floats, contents undefined. Local. ENVIRONMENT when memory is out. */
enum status pieces_take(float **piece, struct pieces *pieces, int64_t count);

/* Gives a piece back; NULL is allowed. Local. */
void pieces_return(struct pieces *pieces, float *piece);

/* Bytes asked of the system so far. Local. */
size_t pieces_bytes(const struct pieces *pieces);

#endif
