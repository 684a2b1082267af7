/* Working memory of kernels: one aligned piece for each thread, kept between calls. */
#ifndef STAGES_MODEL_KERNELS_SCRATCH_H
#define STAGES_MODEL_KERNELS_SCRATCH_H

#include <stddef.h>

#include "pipeline/base/arena.h"

struct scratch {
  struct arena arena;
  size_t piece_bytes;
};

/* Makes room for a piece of `bytes` for each of the threads that a parallel region started now can
 * have; what the pieces held is lost. Call outside of parallel regions. Kernels cannot fail: the
 * program says so and ends with the exit code of ENVIRONMENT when the system has no memory left.
 * Local. */
void scratch_reserve(struct scratch *scratch, size_t bytes);

/* The piece of the calling thread, aligned to ARENA_ALIGNMENT. Local. */
void *scratch_piece(const struct scratch *scratch);

/* The same piece, to be cut up. Local. */
struct arena scratch_arena(const struct scratch *scratch);

/* One piece of `bytes` for all threads instead, aligned likewise. Local. */
void *scratch_share(struct scratch *scratch, size_t bytes);

/* Returns the memory. Accepts a zeroed struct. Local. */
void scratch_free(struct scratch *scratch);

#endif
