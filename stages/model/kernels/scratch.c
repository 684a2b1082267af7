#include "stages/model/kernels/scratch.h"

#include <omp.h>
#include <stdlib.h>

enum { PAGE_BYTES = 4096 };

void scratch_reserve(struct scratch *scratch, size_t bytes) {
  const size_t threads = (size_t)omp_get_max_threads();
  const size_t piece = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  if (piece <= scratch->piece_bytes && threads * scratch->piece_bytes <= scratch->arena.size)
    return;
  const size_t kept = piece > scratch->piece_bytes ? piece : scratch->piece_bytes;
  arena_free(&scratch->arena);
  if (arena_init(&scratch->arena, "kernels", threads * kept) != STATUS_OK) abort();
  scratch->piece_bytes = kept;
}

void *scratch_piece(const struct scratch *scratch) {
  return scratch->arena.base + (size_t)omp_get_thread_num() * scratch->piece_bytes;
}

void scratch_free(struct scratch *scratch) {
  arena_free(&scratch->arena);
  scratch->piece_bytes = 0;
}
