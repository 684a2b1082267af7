#include "sharding/window.h"

#include <sched.h>
#include <string.h>
#include <sys/statvfs.h>

#include "sharding/comm_call.h"
#include "sharding/split.h"
#include "sharding/tree.h"

enum { SPINS = 2000, TILE_BYTES = 4096, DEPTH_MAX = 8 };

/* --- opening ---------------------------------------------------------------------------------- */

static bool has_space(const struct comm *node) {
  struct statvfs space;
  const uint64_t needed = 2 * (uint64_t)node->size * sizeof(struct window_share);
  return statvfs("/dev/shm", &space) == 0 && space.f_bavail * space.f_frsize >= needed;
}

/* Whether every node is one subtree of the tree over ranks, of the same size, with space. */
static enum status is_regular(bool *regular, struct comm *comm, const struct comm *node) {
  const bool aligned = (comm->rank - node->rank) % node->size == 0;
  int64_t worst[3] = {node->size, -node->size, !aligned || !has_space(node)};
  TRY(comm_allreduce(comm, worst, 3, DTYPE_I64, COMM_MAX));
  *regular = worst[0] == -worst[1] && worst[2] == 0 && node->size >= 2 &&
             node->size <= WINDOW_RANKS_MAX && split_power_of_two(node->size);
  return STATUS_OK;
}

static enum status open_node(struct comm *node, struct comm *comm, int ranks_per_node) {
  struct comm shared;
  TRY(comm_split_node(&shared, comm));
  if (ranks_per_node <= 0) {
    *node = shared;
    return STATUS_OK;
  }
  const enum status status = comm_split(node, &shared, shared.rank / ranks_per_node);
  comm_free(&shared);
  return status;
}

/* Open MPI aligns to 8 bytes only. Segments begin on pages, so all ranks round alike. */
static struct window_share *aligned(void *memory) {
  const uintptr_t step = _Alignof(struct window_share);
  return (struct window_share *)(((uintptr_t)memory + step - 1) / step * step);
}

static enum status share_memory(struct window *window) {
  const MPI_Aint wanted = (MPI_Aint)(sizeof(struct window_share) + _Alignof(struct window_share));
  void *memory = NULL;
  MPI_TRY("MPI_Win_allocate_shared",
          MPI_Win_allocate_shared(wanted, 1, MPI_INFO_NULL, window->node.handle, (void *)&memory,
                                  &window->handle));
  for (int r = 0; r < window->node.size; r++) {
    MPI_Aint bytes;
    int unit;
    MPI_TRY("MPI_Win_shared_query",
            MPI_Win_shared_query(window->handle, r, &bytes, &unit, (void *)&memory));
    window->shares[r] = aligned(memory);
  }
  struct window_share *share = window->shares[window->node.rank];
  atomic_store(&share->filled, 0);
  atomic_store(&share->summed, 0);
  return comm_barrier(&window->node);
}

static enum status open_regular(struct comm *comm, struct comm *node) {
  struct arena memory;
  TRY(arena_init(&memory, "window", sizeof(struct window)));
  struct window *window = arena_take_zeroed(&memory, sizeof *window);
  window->memory = memory;
  window->node = *node;
  window->yields = comm->yields;
  *node = (struct comm){0};
  TRY(comm_split(&window->peers, comm, window->node.rank));
  TRY(share_memory(window));
  comm->window = window;
  return STATUS_OK;
}

enum status window_open(struct comm *comm, int ranks_per_node) {
  struct comm node = {0};
  bool regular = false;
  if (comm->window || !split_power_of_two(comm->size)) return STATUS_OK;
  TRY(open_node(&node, comm, ranks_per_node));
  enum status status = is_regular(&regular, comm, &node);
  if (status == STATUS_OK && regular) status = open_regular(comm, &node);
  comm_free(&node);
  return status;
}

void window_close(struct window *window) {
  if (!window) return;
  if (window->shares[0]) MPI_Win_free(&window->handle);
  comm_free(&window->peers);
  comm_free(&window->node);
  struct arena memory = window->memory;
  arena_free(&memory);
}

/* --- summing ---------------------------------------------------------------------------------- */

struct piece {
  struct window *window;
  char *values; /* this rank's, of the piece */
  int slot;
  int64_t count;
  int64_t element_bytes;
  enum dtype dtype;
};

static void pause_after(const struct window *window, int64_t spins) {
  if (window->yields || spins > SPINS) sched_yield();
}

/* Waits until every rank of the node has filled (or summed) `pieces` pieces. */
static void wait_filled(const struct window *window, int64_t pieces) {
  for (int r = 0; r < window->node.size; r++)
    for (int64_t i = 0;
         atomic_load_explicit(&window->shares[r]->filled, memory_order_acquire) < pieces; i++)
      pause_after(window, i);
}

static void wait_summed(const struct window *window, int64_t pieces) {
  for (int r = 0; r < window->node.size; r++)
    for (int64_t i = 0;
         atomic_load_explicit(&window->shares[r]->summed, memory_order_acquire) < pieces; i++)
      pause_after(window, i);
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
static void fill(const struct piece *piece) {
  const struct split own = part_of(piece, piece->window->node.rank);
  const struct split before = {0, own.begin};
  const struct split after = {own.end, piece->count};
  const int rank = piece->window->node.rank;
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
      comm_add(levels[place.level], leaf, count, piece->dtype);
    for (int64_t m = 1; m < place.merges; m++)
      comm_add(levels[place.level - m], levels[place.level - m + 1], count, piece->dtype);
  }
  memcpy(own, levels[0], bytes);
}

/* Adds this rank's part up and puts the sum where the others read it. */
static enum status sum_part(const struct piece *piece) {
  const int rank = piece->window->node.rank;
  const struct split part = part_of(piece, rank);
  const int64_t tile = TILE_BYTES / piece->element_bytes;
  for (int64_t i = part.begin; i < part.end; i += tile)
    sum_tile(piece, i, part.end - i < tile ? part.end - i : tile);
  char *own = piece->values + part.begin * piece->element_bytes;
  TRY(comm_tree_sum(&piece->window->peers, own, split_count(part), piece->dtype));
  memcpy(slot_of(piece, rank, part.begin), own, bytes_of(piece, part));
  return STATUS_OK;
}

static void copy_out(const struct piece *piece) {
  for (int r = 0; r < piece->window->node.size; r++) {
    const struct split part = part_of(piece, r);
    if (r != piece->window->node.rank)
      memcpy(piece->values + part.begin * piece->element_bytes, slot_of(piece, r, part.begin),
             bytes_of(piece, part));
  }
}

/* Two slots are enough: who fills a slot again has seen that all have summed the piece after it,
 * which they did after copying it out. */
static enum status sum_piece(const struct piece *piece) {
  struct window *window = piece->window;
  struct window_share *own = window->shares[window->node.rank];
  window->pieces++;
  fill(piece);
  atomic_store_explicit(&own->filled, window->pieces, memory_order_release);
  wait_filled(window, window->pieces);
  TRY(sum_part(piece));
  atomic_store_explicit(&own->summed, window->pieces, memory_order_release);
  wait_summed(window, window->pieces);
  copy_out(piece);
  return STATUS_OK;
}

enum status window_sum(struct window *window, void *values, int64_t count, enum dtype dtype) {
  const int64_t element_bytes = (int64_t)dtype_bytes(dtype);
  const int64_t step = WINDOW_SLOT_BYTES / element_bytes;
  for (int64_t i = 0; i < count; i += step) {
    const struct piece piece = {.window = window,
                                .values = (char *)values + i * element_bytes,
                                .slot = (int)(window->pieces % WINDOW_SLOTS),
                                .count = count - i < step ? count - i : step,
                                .element_bytes = element_bytes,
                                .dtype = dtype};
    TRY(sum_piece(&piece));
  }
  return STATUS_OK;
}
