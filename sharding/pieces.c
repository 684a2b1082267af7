#include "sharding/pieces.h"

static const int64_t SLAB_BYTES = 16 << 20, SPAN_BYTES = sizeof(struct pieces_span);

void pieces_init(struct pieces *pieces, const char *account) {
  *pieces = (struct pieces){.account = account};
}

void pieces_free(struct pieces *pieces) {
  for (int64_t i = 0; i < pieces->count; i++) arena_free(&pieces->slabs[i]);
  *pieces = (struct pieces){0};
}

static struct pieces_span *first_of(const struct arena *slab) {
  return (struct pieces_span *)(void *)slab->base;
}

/* The span after this one; NULL at the end of the slab. */
static struct pieces_span *next_of(const struct arena *slab, struct pieces_span *span) {
  unsigned char *next = (unsigned char *)span + span->bytes;
  return next < slab->base + slab->used ? (struct pieces_span *)(void *)next : NULL;
}

/* The smallest free span of at least `bytes`; NULL when there is none. */
static struct pieces_span *find(const struct pieces *pieces, int64_t bytes) {
  struct pieces_span *best = NULL;
  for (int64_t i = 0; i < pieces->count; i++) {
    const struct arena *slab = &pieces->slabs[i];
    for (struct pieces_span *s = first_of(slab); s; s = next_of(slab, s))
      if (!s->taken && s->bytes >= bytes && (!best || s->bytes < best->bytes)) best = s;
  }
  return best;
}

static enum status grow(struct pieces *pieces, int64_t bytes) {
  CHECK(pieces->count < PIECES_SLABS, STATUS_INTERNAL, "more than %d slabs of %s", PIECES_SLABS,
        pieces->account);
  struct arena *slab = &pieces->slabs[pieces->count];
  TRY(arena_init(slab, pieces->account, (size_t)(bytes > SLAB_BYTES ? bytes : SLAB_BYTES)));
  struct pieces_span *span = arena_take(slab, slab->size);
  *span = (struct pieces_span){.bytes = (int64_t)slab->size};
  pieces->count++;
  return STATUS_OK;
}

/* Leaves what is beyond `bytes` as a span of its own. */
static void cut(struct pieces_span *span, int64_t bytes) {
  if (span->bytes - bytes < 2 * SPAN_BYTES) return;
  struct pieces_span *rest = (struct pieces_span *)(void *)((unsigned char *)span + bytes);
  *rest = (struct pieces_span){.bytes = span->bytes - bytes};
  span->bytes = bytes;
}

enum status pieces_take(float **piece, struct pieces *pieces, int64_t count) {
  const int64_t data = count * (int64_t)sizeof(float);
  const int64_t bytes = SPAN_BYTES + (data + SPAN_BYTES - 1) / SPAN_BYTES * SPAN_BYTES;
  struct pieces_span *span = find(pieces, bytes);
  if (!span) {
    TRY(grow(pieces, bytes));
    span = first_of(&pieces->slabs[pieces->count - 1]);
  }
  cut(span, bytes);
  span->taken = 1;
  *piece = (float *)(void *)(span + 1);
  return STATUS_OK;
}

/* Makes neighbours that are free one span. */
static void join(const struct arena *slab) {
  for (struct pieces_span *s = first_of(slab), *next; (next = next_of(slab, s)) != NULL;) {
    if (s->taken || next->taken)
      s = next;
    else
      s->bytes += next->bytes;
  }
}

void pieces_return(struct pieces *pieces, float *piece) {
  if (!piece) return;
  ((struct pieces_span *)(void *)piece - 1)->taken = 0;
  for (int64_t i = 0; i < pieces->count; i++) {
    const struct arena *slab = &pieces->slabs[i];
    const unsigned char *at = (const unsigned char *)piece;
    if (at >= slab->base && at < slab->base + slab->used) join(slab);
  }
}

size_t pieces_bytes(const struct pieces *pieces) {
  size_t bytes = 0;
  for (int64_t i = 0; i < pieces->count; i++) bytes += pieces->slabs[i].size;
  return bytes;
}
