#include <sched.h>
#include <string.h>

#include "sharding/add.h"
#include "sharding/comm_call.h"
#include "sharding/split.h"
#include "sharding/tree.h"
#include "sharding/window.h"

enum { SPINS = 2000, TILE_BYTES = 4096, DEPTH_MAX = 8 };

struct piece {
  struct window *window;
  char *values; /* this rank's, of the piece */
  int64_t slot;
  int64_t count;
  int64_t element_bytes;
  enum dtype dtype;
};

/* The piece at a cursor; false when nothing is left. */
static bool piece_at(struct piece *piece, struct window *window,
                     const struct window_cursor *cursor) {
  if (cursor->range == window->queued) return false;
  const struct window_range *range = &window->ranges[cursor->range % WINDOW_RANGES];
  const int64_t bytes = (int64_t)dtype_bytes(range->dtype);
  const int64_t most = WINDOW_SLOT_BYTES / bytes;
  const int64_t left = range->count - cursor->offset;
  *piece = (struct piece){.window = window,
                          .values = range->values + cursor->offset * bytes,
                          .slot = cursor->pieces % WINDOW_SLOTS,
                          .count = left < most ? left : most,
                          .element_bytes = bytes,
                          .dtype = range->dtype};
  return true;
}

static void advance(struct window_cursor *cursor, const struct piece *piece) {
  cursor->pieces++;
  cursor->offset += piece->count;
  if (cursor->offset < piece->window->ranges[cursor->range % WINDOW_RANGES].count) return;
  cursor->range++;
  cursor->offset = 0;
}

static struct split part_of(const struct piece *piece, int rank) {
  return split_even(piece->count, piece->window->node.size, rank);
}

static unsigned char *slot_of(const struct piece *piece, int rank, int64_t element) {
  return piece->window->shares[rank]->slots[piece->slot] + element * piece->element_bytes;
}

static size_t bytes_of(const struct piece *piece, struct split part) {
  return (size_t)(split_count(part) * piece->element_bytes);
}

/* Everything but this rank's own part, which it reads from its own array. */
static void copy_in(const struct piece *piece) {
  const int rank = piece->window->node.rank;
  const struct split own = part_of(piece, rank);
  const struct split before = {0, own.begin};
  const struct split after = {own.end, piece->count};
  memcpy(slot_of(piece, rank, 0), piece->values, bytes_of(piece, before));
  memcpy(slot_of(piece, rank, own.end), piece->values + own.end * piece->element_bytes,
         bytes_of(piece, after));
}

/* A few elements of every rank, along the tree over the ranks of the node. */
static void sum_tile(const struct piece *piece, int64_t first, int64_t count) {
  _Alignas(64) unsigned char levels[DEPTH_MAX][TILE_BYTES];
  const int size = piece->window->node.size;
  char *own = piece->values + first * piece->element_bytes;
  const size_t bytes = (size_t)(count * piece->element_bytes);
  for (int r = 0; r < size; r++) {
    const struct tree_place place = tree_place(size, r);
    const void *leaf = r == piece->window->node.rank ? (void *)own : slot_of(piece, r, first);
    if (place.merges == 0)
      memcpy(levels[place.level], leaf, bytes);
    else
      add_arrays(levels[place.level], leaf, count, piece->dtype);
    for (int64_t m = 1; m < place.merges; m++)
      add_arrays(levels[place.level - m], levels[place.level - m + 1], count, piece->dtype);
  }
  memcpy(own, levels[0], bytes);
}

/* Adds this rank's part up over the node, and starts the sum over nodes. */
static enum status sum_part(const struct piece *piece) {
  struct window *window = piece->window;
  const struct split part = part_of(piece, window->node.rank);
  const int64_t tile = TILE_BYTES / piece->element_bytes;
  for (int64_t i = part.begin; window->node.size > 1 && i < part.end; i += tile)
    sum_tile(piece, i, part.end - i < tile ? part.end - i : tile);
  return comm_tree_start(&window->peers, &window->passing[piece->slot],
                         piece->values + part.begin * piece->element_bytes, split_count(part),
                         piece->dtype, window->scratch + piece->slot * window->scratch_bytes);
}

/* Puts this rank's part where the others of the node read it. */
static void publish(const struct piece *piece) {
  const int rank = piece->window->node.rank;
  const struct split part = part_of(piece, rank);
  if (piece->window->node.size > 1)
    memcpy(slot_of(piece, rank, part.begin), piece->values + part.begin * piece->element_bytes,
           bytes_of(piece, part));
}

static void copy_out(const struct piece *piece) {
  for (int r = 0; r < piece->window->node.size; r++) {
    const struct split part = part_of(piece, r);
    if (r != piece->window->node.rank)
      memcpy(piece->values + part.begin * piece->element_bytes, slot_of(piece, r, part.begin),
             bytes_of(piece, part));
  }
}

enum step { STEP_FILL, STEP_SUM, STEP_COPY }; /* what ranks of a node tell one another */

static _Atomic int64_t *counter_of(struct window_share *share, enum step step) {
  if (step == STEP_FILL) return &share->filled;
  return step == STEP_SUM ? &share->summed : &share->copied;
}

/* Whether every rank of the node has done `step` for more than `pieces` pieces. */
static bool all_beyond(const struct window *window, enum step step, int64_t pieces) {
  for (int r = 0; r < window->node.size; r++)
    if (atomic_load_explicit(counter_of(window->shares[r], step), memory_order_acquire) <= pieces)
      return false;
  return true;
}

static void tell(struct window *window, enum step step, int64_t pieces) {
  struct window_share *own = window->shares[window->node.rank];
  atomic_store_explicit(counter_of(own, step), pieces, memory_order_release);
}

/* A slot is filled again once every rank has copied its former piece out. */
static bool try_fill(struct window *window) {
  struct piece piece;
  if (!piece_at(&piece, window, &window->fill)) return false;
  if (!all_beyond(window, STEP_COPY, window->fill.pieces - WINDOW_SLOTS)) return false;
  copy_in(&piece);
  advance(&window->fill, &piece);
  tell(window, STEP_FILL, window->fill.pieces);
  return true;
}

static enum status try_sum(struct window *window, bool *progress) {
  struct piece piece;
  if (!piece_at(&piece, window, &window->sum)) return STATUS_OK;
  if (!all_beyond(window, STEP_FILL, window->sum.pieces)) return STATUS_OK;
  TRY(sum_part(&piece));
  advance(&window->sum, &piece);
  *progress = true;
  return STATUS_OK;
}

/* Helps on all parts that are between nodes; the oldest ends first. */
static enum status try_pass(struct window *window, bool *progress) {
  struct piece piece;
  bool done = true;
  for (int64_t i = window->pass.pieces + 1; i < window->sum.pieces; i++)
    TRY(comm_tree_test(&window->peers, &window->passing[i % WINDOW_SLOTS], &done));
  if (window->pass.pieces == window->sum.pieces) return STATUS_OK;
  TRY(comm_tree_test(&window->peers, &window->passing[window->pass.pieces % WINDOW_SLOTS], &done));
  if (!done || !piece_at(&piece, window, &window->pass)) return STATUS_OK;
  publish(&piece);
  advance(&window->pass, &piece);
  tell(window, STEP_SUM, window->pass.pieces);
  *progress = true;
  return STATUS_OK;
}

static bool try_copy(struct window *window) {
  struct piece piece;
  if (!piece_at(&piece, window, &window->copy)) return false;
  if (!all_beyond(window, STEP_SUM, window->copy.pieces)) return false;
  copy_out(&piece);
  advance(&window->copy, &piece);
  tell(window, STEP_COPY, window->copy.pieces);
  return true;
}

static enum status poll_once(struct window *window, bool *progress) {
  *progress = try_copy(window);
  TRY(try_pass(window, progress));
  TRY(try_sum(window, progress));
  if (try_fill(window)) *progress = true;
  return STATUS_OK;
}

enum status window_poll(struct window *window) {
  for (bool progress = true; progress;) TRY(poll_once(window, &progress));
  return STATUS_OK;
}

/* Until at most `left` arrays are queued. `name` is what the traffic of the communicator shows. */
static enum status drain(struct window *window, int64_t left, const char *name, int64_t bytes) {
  int64_t idle = 0;
  const double started = comm_enter(window->owner, name, bytes);
  while (window->queued - window->copy.range > left) {
    bool progress = false;
    TRY(poll_once(window, &progress));
    idle = progress ? 0 : idle + 1;
    if (idle > (window->yields ? 0 : SPINS)) sched_yield();
  }
  comm_leave(window->owner, started);
  return STATUS_OK;
}

enum status window_start(struct window *window, void *values, int64_t count, enum dtype dtype) {
  if (count == 0) return STATUS_OK;
  TRY(drain(window, WINDOW_RANGES - 1, "sum_start", count * (int64_t)dtype_bytes(dtype)));
  window->ranges[window->queued % WINDOW_RANGES] = (struct window_range){values, count, dtype};
  window->queued++;
  return STATUS_OK;
}

enum status window_finish(struct window *window) {
  return drain(window, 0, "sum_wait", 0);
}

enum status window_sum(struct window *window, void *values, int64_t count, enum dtype dtype) {
  TRY(window_start(window, values, count, dtype));
  return window_finish(window);
}
