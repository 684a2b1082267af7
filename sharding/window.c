#include "sharding/window.h"

#include <sys/statvfs.h>

#include "sharding/comm_call.h"
#include "sharding/split.h"

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
             node->size <= WINDOW_RANKS_MAX && split_power_of_two(node->size) &&
             split_power_of_two(comm->size);
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

static void clear_counters(struct window_share *share) {
  atomic_store(&share->filled, 0);
  atomic_store(&share->summed, 0);
  atomic_store(&share->copied, 0);
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
  clear_counters(window->shares[window->node.rank]);
  return comm_barrier(&window->node);
}

/* What the parts of a node's pieces need on their way between nodes. */
static int64_t scratch_bytes(const struct window *window) {
  const int64_t narrow = comm_tree_scratch(&window->peers, WINDOW_SLOT_BYTES / 2, DTYPE_BF16);
  const int64_t wide = comm_tree_scratch(&window->peers, WINDOW_SLOT_BYTES / 4, DTYPE_F32);
  return (narrow > wide ? narrow : wide) + ARENA_ALIGNMENT;
}

static enum status take(struct window **window, const struct window *described, bool shared) {
  struct arena memory;
  const size_t scratch = (size_t)described->scratch_bytes * WINDOW_SLOTS;
  const size_t own = shared ? 0 : sizeof(struct window_share);
  TRY(arena_init(&memory, "window", sizeof **window + scratch + own + 3 * ARENA_ALIGNMENT));
  *window = arena_take(&memory, sizeof **window);
  **window = *described;
  (*window)->scratch = arena_take(&memory, scratch);
  if (!shared) (*window)->shares[0] = arena_take(&memory, own);
  (*window)->memory = memory;
  return STATUS_OK;
}

/* `node` is taken over. */
static enum status open_over(struct comm *comm, struct comm *node, bool shared) {
  struct window described = {
      .node = *node, .owner = comm, .yields = comm->yields, .shared = shared};
  *node = (struct comm){0};
  enum status status = comm_split(&described.peers, comm, described.node.rank);
  described.scratch_bytes = scratch_bytes(&described);
  if (status == STATUS_OK) status = take(&comm->window, &described, shared);
  if (status != STATUS_OK) {
    comm_free(&described.peers);
    comm_free(&described.node);
    return status;
  }
  if (shared) return share_memory(comm->window);
  clear_counters(comm->window->shares[0]);
  return STATUS_OK;
}

enum status window_open(struct comm *comm, int ranks_per_node) {
  struct comm node = {0};
  bool regular = false;
  if (comm->window || comm->size == 1) return STATUS_OK;
  TRY(open_node(&node, comm, ranks_per_node));
  enum status status = is_regular(&regular, comm, &node);
  if (status == STATUS_OK && !regular) {
    comm_free(&node);
    status = comm_split(&node, comm, comm->rank);
  }
  if (status == STATUS_OK) status = open_over(comm, &node, regular);
  comm_free(&node);
  return status;
}

void window_close(struct window *window) {
  if (!window) return;
  if (window->shared && window->shares[0]) MPI_Win_free(&window->handle);
  comm_free(&window->peers);
  comm_free(&window->node);
  struct arena memory = window->memory;
  arena_free(&memory);
}
