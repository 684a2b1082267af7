#define _DEFAULT_SOURCE
#include "pipeline/base/arena.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE_BYTES = 2 << 20 };

static size_t round_up(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}

static size_t mapped(size_t size) {
  return round_up(size ? size : 1, HUGE_PAGE_BYTES);
}

void arena_measure(struct arena *arena, const char *account) {
  *arena = (struct arena){.account = account};
}

enum status arena_init(struct arena *arena, const char *account, size_t size) {
  *arena = (struct arena){.account = account};
  const size_t rounded = mapped(size);
  CHECK(rounded >= size, STATUS_ENVIRONMENT, "arena '%s': %zu bytes is not a possible size",
        account, size);
  void *base = mmap(NULL, rounded, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(base != MAP_FAILED, STATUS_ENVIRONMENT,
        "arena '%s': the system refused %zu bytes (%s); use more ranks or a smaller model", account,
        rounded, strerror(errno));
  (void)madvise(base, rounded, MADV_HUGEPAGE); /* fewer page faults; only a hint */
  arena->base = base;
  arena->size = round_up(size, ARENA_ALIGNMENT); /* strict: measuring must not be less */
  return STATUS_OK;
}

void arena_free(struct arena *arena) {
  if (arena->base) munmap(arena->base, mapped(arena->size));
  *arena = (struct arena){0};
}

void *arena_take(struct arena *arena, size_t bytes) {
  const size_t start = arena->used;
  arena->used += round_up(bytes, ARENA_ALIGNMENT);
  if (arena->used > arena->peak) arena->peak = arena->used;
  if (arena_is_measuring(arena)) return NULL;
  if (arena->used > arena->size) {
    fprintf(stderr, "arena '%s': asked for %zu bytes beyond its measured size %zu\n",
            arena->account, arena->used - arena->size, arena->size);
    abort();
  }
  return arena->base + start;
}

void *arena_take_zeroed(struct arena *arena, size_t bytes) {
  void *piece = arena_take(arena, bytes);
  if (piece) memset(piece, 0, bytes);
  return piece;
}

size_t arena_mark(const struct arena *arena) {
  return arena->used;
}

void arena_reset(struct arena *arena, size_t mark) {
  assert(mark <= arena->used);
  arena->used = mark;
}
