/* Sums through memory that the ranks of a node share. An array goes through in pieces: each rank
 * copies its piece in, adds one part of it over all ranks of the node, and copies the other parts
 * out. Over several nodes the ranks with the same place add their part by messages in between,
 * several pieces being on their way at once. The order of adding is that of comm_tree_sum, and so
 * are the bits. Where ranks share no memory, or nodes are uneven, every rank is a node of its own.
 *
 * Arrays may be queued and helped along while other work goes on: a rank that is ahead does not
 * wait for the others before the slots are full.
 *
 * The memory is an MPI shared window: nothing of it is left after a crash.
 */
#ifndef SHARDING_WINDOW_H
#define SHARDING_WINDOW_H

#include <stdatomic.h>
#include <stdint.h>

#include "sharding/comm.h"

enum {
  WINDOW_SLOT_BYTES = 256 << 10, /* one piece */
  WINDOW_SLOTS = 8,
  WINDOW_RANKS_MAX = 256,
  WINDOW_RANGES = 256 /* arrays that may be queued */
};

/* What each rank shares: how many pieces it is done with, and its slots. */
struct window_share {
  _Alignas(64) _Atomic int64_t filled; /* copied in */
  _Alignas(64) _Atomic int64_t summed; /* this rank's part is added up */
  _Alignas(64) _Atomic int64_t copied; /* copied out */
  _Alignas(64) unsigned char slots[WINDOW_SLOTS][WINDOW_SLOT_BYTES];
};

struct window_range {
  char *values; /* borrowed */
  int64_t count;
  enum dtype dtype;
};

/* The next piece to fill, to sum inside the node, to await from other nodes, or to copy out. */
struct window_cursor {
  int64_t range;  /* number of the queued array */
  int64_t offset; /* elements of it that are done */
  int64_t pieces; /* done so far */
};

struct window {
  struct comm node;  /* the ranks that share memory */
  struct comm peers; /* the ranks with the same place in their node */
  MPI_Win handle;
  bool yields, shared;
  struct comm *owner; /* borrowed: whose traffic counts what is queued and waited for */
  int64_t queued;     /* arrays so far */
  struct window_range ranges[WINDOW_RANGES];
  struct window_cursor fill, sum, pass, copy;
  struct comm_tree_request passing[WINDOW_SLOTS]; /* parts on their way between nodes */
  unsigned char *scratch;                         /* [WINDOW_SLOTS][scratch_bytes] for them */
  int64_t scratch_bytes;
  struct window_share *shares[WINDOW_RANKS_MAX]; /* of each rank of the node */
  struct arena memory;                           /* owned; holds this struct */
};

/* Opens a window for `comm`; nothing is done for a single rank. Memory is shared, and comm_tree_sum
 * goes through it from then on, where that keeps the order: every node has the same power-of-two
 * number of consecutive ranks, at least 2 and at most WINDOW_RANKS_MAX, and space in /dev/shm.
 * `ranks_per_node` is 0, or pretends smaller nodes than there are (for tests). Collective. */
enum status window_open(struct comm *comm, int ranks_per_node);

/* Closes it; comm_free does so too. Accepts NULL. Collective. */
void window_close(struct window *window);

/* values[i] = the sum over all ranks of the communicator that the window was opened for. F32, F64
 * or BF16. Finishes what was queued before. Collective. */
enum status window_sum(struct window *window, void *values, int64_t count, enum dtype dtype);

/* Queues an array, which belongs to the window until window_finish; every rank queues the same
 * arrays in the same order. Collective. */
enum status window_start(struct window *window, void *values, int64_t count, enum dtype dtype);

/* Whether the array that was queued as number `number` (window->queued before its start) is summed.
 * Local. */
static inline bool window_is_past(const struct window *window, int64_t number) {
  return window->copy.range > number;
}

/* Does what can be done without waiting for other ranks. Local. */
enum status window_poll(struct window *window);

/* Ends everything that was queued. Collective. */
enum status window_finish(struct window *window);

#endif
