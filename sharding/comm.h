/* Communicators: every exchange between ranks goes through these wrappers.
 *
 * Counts are int64_t; messages are cut to `block_bytes` (Open MPI 4.1 has no large-count calls, and
 * blocks of 256 KiB to 4 MiB are the fastest). Calls that only move data count bytes; calls that
 * add name the element type. MPI errors come back as statuses (INTERNAL, naming the call).
 * Collective calls are made by every rank of the communicator in the same order. One thread
 * communicates at a time.
 *
 * Nothing fallible may stand between two collectives without comm_agree.
 */
#ifndef SHARDING_COMM_H
#define SHARDING_COMM_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/dtype.h"
#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

enum comm_operation { COMM_SUM, COMM_MAX, COMM_MIN };

struct window;

enum { COMM_BLOCK_BYTES = 256 << 10 }; /* default size of one message */

/* What went through a communicator; `last` and `calls` are read by the watchdog. */
struct comm_traffic {
  int64_t calls;         /* calls of these wrappers so far: the id of the last collective */
  int64_t bytes;         /* handed to the wrappers by this rank */
  int64_t largest_count; /* the largest count ever passed to MPI */
  double seconds;        /* time spent inside the wrappers */
  const char *volatile last;
};

struct comm {
  MPI_Comm handle;
  int rank, size;
  int64_t block_bytes;
  bool yields;          /* as asked for in comm_init */
  int64_t tree_sums;    /* started by comm_tree_start so far: tells their messages apart */
  struct arena scratch; /* owned; two blocks */
  struct comm_traffic traffic;
  struct window *window; /* owned; sums that go on while ranks compute (window.h), or NULL */
};

struct comm_options {
  int64_t block_bytes; /* 0 = COMM_BLOCK_BYTES; a multiple of 8 */
  bool yield;          /* ranks share cores: waiting ranks give the core away */
};

/* Starts MPI and opens the world. `options` may be NULL. Once per process. Collective.
 * ENVIRONMENT when MPI cannot start. */
enum status comm_init(struct comm *world, const struct comm_options *options);

/* Ends MPI; the world is zeroed. Every other communicator must have been freed. Collective. */
void comm_finalize(struct comm *world);

/* Ends all ranks at once with this exit code, for a rank that cannot reach the others any more.
 * Does not return. Local. */
void comm_abort(struct comm *world, int exit_code);

/* Opens the communicator of the ranks that give the same `color`, in the order of their rank in
 * `parent`. Collective over parent. */
enum status comm_split(struct comm *comm, struct comm *parent, int color);

/* Opens the communicator of the ranks that share memory with this one. Collective over parent. */
enum status comm_split_node(struct comm *comm, struct comm *parent);

/* Frees a communicator made by comm_split*; accepts a zeroed one. Collective over it. */
void comm_free(struct comm *comm);

/* --- agreement ------------------------------------------------------------------------------- */

/* All ranks leave with the same status: OK when every rank gave OK, else the worst one given. The
 * report of the (lowest) rank that gave it becomes the report of every rank, its message headed by
 * "rank R on HOST: ", so that rank 0 can print it. Order of severity: OK, STOPPED, WRITE,
 * ENVIRONMENT, HANG, USAGE, MISMATCH, DAMAGED, NUMERIC, INTERNAL (what must not be tried again
 * wins). Collective. */
enum status comm_agree(struct comm *comm, enum status status);

/* --- moving data ----------------------------------------------------------------------------- */

struct comm_part {
  void *data; /* borrowed */
  int64_t bytes;
};

/* Rank `root`'s bytes to all. Collective. */
enum status comm_broadcast(struct comm *comm, void *data, int64_t bytes, int root);

/* `bytes` bytes of every rank, in the order of ranks, to all: all[size][bytes]. `mine` may be its
 * own place in `all`. Collective. */
enum status comm_allgather(struct comm *comm, void *all, const void *mine, int64_t bytes);

/* As comm_allgather with bytes_of_rank[r] bytes from rank r, packed. Collective. */
enum status comm_allgatherv(struct comm *comm, void *all, const void *mine,
                            const int64_t *bytes_of_rank);

/* As comm_allgather to rank `root` only; `all` is not used elsewhere. Collective. */
enum status comm_gather(struct comm *comm, void *all, const void *mine, int64_t bytes, int root);

/* Sends sent_bytes[r] bytes to each rank r and receives received_bytes[r] from it; both sides
 * packed in the order of ranks. Collective. */
enum status comm_alltoallv(struct comm *comm, void *received, const int64_t *received_bytes,
                           const void *sent, const int64_t *sent_bytes);

/* One message to / from rank `peer`; both sides name the same byte count. Local (paired). */
enum status comm_send(struct comm *comm, const void *data, int64_t bytes, int peer);
enum status comm_receive(struct comm *comm, void *data, int64_t bytes, int peer);

/* Sends to rank `to` and receives from rank `from` at once. A part of 0 bytes sends nothing. Local
 * (paired). */
enum status comm_exchange(struct comm *comm, int to, struct comm_part sent, int from,
                          struct comm_part received);

/* Returns when every rank has called it. Collective. */
enum status comm_barrier(struct comm *comm);

/* --- adding, in an order that MPI picks --------------------------------------------------------
 */

/* values[i] = the sum / maximum / minimum over ranks, on every rank. F64, F32, I64, I32, U8 by MPI;
 * BF16 travels as F32 and is rounded once at the end. Exact, hence canonical, for integers and for
 * maxima and minima; for sums of reals see comm_tree_sum. Collective. */
enum status comm_allreduce(struct comm *comm, void *values, int64_t count, enum dtype dtype,
                           enum comm_operation operation);

/* Rank r gets the sum over ranks of elements [borders[r], borders[r + 1]) of `values`, written at
 * `mine`; `values` is spoiled. F32 and F64. Collective. */
enum status comm_reduce_scatter(struct comm *comm, void *mine, void *values, const int64_t *borders,
                                enum dtype dtype);

/* --- adding, in the order of the tree over ranks -----------------------------------------------
 */

/* As comm_allreduce(COMM_SUM) for F32, F64 and BF16, added along the binary tree over rank ids:
 * ((0 + 1) + (2 + 3)) + ... (BF16 is rounded after each addition). The result has the same bits on
 * every rank, and, over a power-of-two number of ranks that each hold a subtree of leaves (tree.h),
 * the same bits whatever that number is. Through shared memory where the communicator has a window;
 * otherwise by recursive halving and doubling: 2 (size - 1) / size of the array leaves each rank.
 * Collective. MISMATCH when the number of ranks is not a power of two. */
enum status comm_tree_sum(struct comm *comm, void *values, int64_t count, enum dtype dtype);

/* As comm_reduce_scatter, in the order and with the conditions of comm_tree_sum. Collective. */
enum status comm_tree_scatter(struct comm *comm, void *mine, void *values, const int64_t *borders,
                              enum dtype dtype);

/* --- adding while computing --------------------------------------------------------------------
 */

enum { COMM_REQUEST_PARTS = 64 };

struct comm_request {
  MPI_Request parts[COMM_REQUEST_PARTS];
  int count;
};

/* Starts comm_allreduce (COMM_SUM; F32 or F64) and returns; `values` belongs to the request until
 * comm_wait. At most COMM_REQUEST_PARTS messages of at most INT_MAX elements. Collective. */
enum status comm_allreduce_start(struct comm *comm, struct comm_request *request, void *values,
                                 int64_t count, enum dtype dtype);

/* Whether the request has ended; helps it on. Local. */
enum status comm_test(struct comm *comm, struct comm_request *request, bool *done);

/* Waits for the end. Accepts a zeroed or ended request. Collective. */
enum status comm_wait(struct comm *comm, struct comm_request *request);

/* Starts comm_broadcast and returns; `data` belongs to the request until comm_wait. At most
 * COMM_REQUEST_PARTS messages. Collective. */
enum status comm_broadcast_start(struct comm *comm, struct comm_request *request, void *data,
                                 int64_t bytes, int root);

/* A small array on its way through the tree over ranks. */
struct comm_tree_request {
  char *values; /* borrowed */
  void *scratch;
  int64_t count;
  enum dtype dtype;
  int tag;
  int step;  /* exchanges done: first halves are added, then they come back */
  bool ends; /* nothing is left to do */
  MPI_Request parts[2];
  struct comm_request whole; /* where the number of ranks is not a power of two */
};

/* Bytes of `scratch` for comm_tree_start. Local. */
int64_t comm_tree_scratch(const struct comm *comm, int64_t count, enum dtype dtype);

/* Starts a sum over ranks of at most INT_MAX bytes and returns; `values` and `scratch` belong to
 * the request until comm_tree_test says done. The order, and so the bits, are those of
 * comm_tree_sum; over other counts than powers of two MPI picks the order. Any number may be on
 * their way at once; ranks start them in the same order, but need not test them in one. It goes on
 * only while ranks test. Collective. */
enum status comm_tree_start(struct comm *comm, struct comm_tree_request *request, void *values,
                            int64_t count, enum dtype dtype, void *scratch);

/* Whether the sum is complete; helps it on without waiting. Local. */
enum status comm_tree_test(struct comm *comm, struct comm_tree_request *request, bool *done);

#endif
