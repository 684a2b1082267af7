#include "stages/model/kernels/scratch.h"

#include <omp.h>

#include "monitoring/log.h"

enum { PAGE_BYTES = 4096 };

static void grow(struct arena *arena, size_t bytes) {
  if (bytes <= arena->size) return;
  arena_free(arena);
  const enum status status = arena_init(arena, "kernels", bytes);
  if (status != STATUS_OK) log_failure_end("kernels", status);
}

void scratch_reserve(struct scratch *scratch, size_t bytes) {
  const size_t threads = (size_t)omp_get_max_threads();
  const size_t piece = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  if (piece > scratch->piece_bytes) scratch->piece_bytes = piece;
  grow(&scratch->arena, threads * scratch->piece_bytes);
}

void *scratch_piece(const struct scratch *scratch) {
  return scratch->arena.base + (size_t)omp_get_thread_num() * scratch->piece_bytes;
}

struct arena scratch_arena(const struct scratch *scratch) {
  return (struct arena){
      .account = "kernels", .base = scratch_piece(scratch), .size = scratch->piece_bytes};
}

void *scratch_share(struct scratch *scratch, size_t bytes) {
  grow(&scratch->arena, bytes);
  return scratch->arena.base;
}

void scratch_free(struct scratch *scratch) {
  arena_free(&scratch->arena);
  scratch->piece_bytes = 0;
}
