/* Arenas: one block of memory per lifetime (run, step, call), handed out in aligned pieces.
 *
 * An arena is asked twice: a measuring arena has no memory and only adds sizes; the real arena is
 * then made with the measured peak, so the two cannot disagree. Pieces are never returned one by
 * one; arena_reset goes back to a mark. Memory of a real arena is reserved at once and touched by
 * its first use only.
 */
#ifndef PIPELINE_BASE_ARENA_H
#define PIPELINE_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/error.h"

enum { ARENA_ALIGNMENT = 64 };

struct arena {
  const char *account; /* borrowed; names the arena in plans and errors */
  unsigned char *base; /* NULL while measuring */
  size_t size;         /* bytes reserved */
  size_t used;
  size_t peak; /* the largest `used` so far */
};

/* Makes a measuring arena: every piece is NULL, sizes are counted. Local. */
void arena_measure(struct arena *arena, const char *account);

/* Makes a real arena of `size` bytes. Local. ENVIRONMENT when the system refuses the memory. */
enum status arena_init(struct arena *arena, const char *account, size_t size);

/* Returns the memory to the system. Accepts a zeroed or a measuring arena. Local. */
void arena_free(struct arena *arena);

/* Hands out `bytes`, aligned to ARENA_ALIGNMENT, contents undefined; NULL from a measuring arena.
 * Asking a real arena for more than it was made for is a fault of the program (assert). Local. */
void *arena_take(struct arena *arena, size_t bytes);

/* As arena_take with all bytes zero. Local. */
void *arena_take_zeroed(struct arena *arena, size_t bytes);

/* Bytes handed out so far; give it to arena_reset to return everything taken since. Local. */
size_t arena_mark(const struct arena *arena);
void arena_reset(struct arena *arena, size_t mark);

static inline bool arena_is_measuring(const struct arena *arena) {
  return arena->base == NULL;
}

#endif
