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
  atomic_store(&share->copied, 0);
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
