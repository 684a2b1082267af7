/* Sums through memory that the ranks of a node share: each rank copies its array in, piece by
 * piece, adds one part of each piece over all ranks of the node, and copies the other parts out.
 * Over several nodes the ranks with the same place add their part by messages in between. The order
 * of adding is that of comm_tree_sum, and so are the bits.
 *
 * The memory is anonymous to the file system (an MPI shared window): nothing is left after a crash.
 */
#ifndef SHARDING_WINDOW_H
#define SHARDING_WINDOW_H

#include <stdatomic.h>
#include <stdint.h>

#include "sharding/comm.h"

enum { WINDOW_SLOT_BYTES = 512 << 10, WINDOW_SLOTS = 2, WINDOW_RANKS_MAX = 256 };

/* What each rank shares: two counters and its slots. */
struct window_share {
  _Alignas(64) _Atomic int64_t filled; /* pieces this rank has copied in */
  _Alignas(64) _Atomic int64_t summed; /* pieces of which this rank's part is added up */
  _Alignas(64) unsigned char slots[WINDOW_SLOTS][WINDOW_SLOT_BYTES];
};

struct window {
  struct comm node;  /* the ranks that share memory */
  struct comm peers; /* the ranks with the same place in their node */
  MPI_Win handle;
  int64_t pieces; /* summed so far */
  bool yields;
  struct window_share *shares[WINDOW_RANKS_MAX]; /* of each rank of the node */
  struct arena memory;                           /* owned; holds this struct */
};

/* Opens a window for `comm`, to be used by comm_tree_sum from then on, where that keeps the order:
 * every node has the same power-of-two number of consecutive ranks, at least 2 and at most
 * WINDOW_RANKS_MAX, and space in /dev/shm. Elsewhere comm->window stays NULL, which is no failure.
 * `ranks_per_node` is 0, or pretends smaller nodes than there are (for tests). Collective. */
enum status window_open(struct comm *comm, int ranks_per_node);

/* Closes it; comm_free does so too. Accepts NULL. Collective. */
void window_close(struct window *window);

/* values[i] = the sum over all ranks of the communicator that the window was opened for. F32 or
 * F64. Collective. */
enum status window_sum(struct window *window, void *values, int64_t count, enum dtype dtype);

#endif
