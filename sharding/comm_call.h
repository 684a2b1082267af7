/* What the files of comm share: counting, cutting into blocks, and turning MPI errors into
 * statuses. Only comm*.c include this.
 */
#ifndef SHARDING_COMM_CALL_H
#define SHARDING_COMM_CALL_H

#include "sharding/comm.h"

enum { COMM_TAG = 1, COMM_TREE_TAG = 2, COMM_TREE_TAGS = 16384 };

/* Raises INTERNAL with MPI's own text for an error code of the call named `name`. Local. */
enum status comm_fail(int code, const char *name, const char *file, int line);

#define MPI_TRY(name, call)                                                                        \
  do {                                                                                             \
    const int mpi_code_ = (call);                                                                  \
    if (mpi_code_ != MPI_SUCCESS) return comm_fail(mpi_code_, name, __FILE__, __LINE__);           \
  } while (0)

/* Notes the start of a call that hands over `bytes`; returns the time. Local. */
double comm_enter(struct comm *comm, const char *name, int64_t bytes);

/* Notes its end. Local. */
void comm_leave(struct comm *comm, double started);

/* Elements of `bytes` bytes in one message; at least 1. Local. */
int64_t comm_block(const struct comm *comm, int64_t element_bytes);

/* `count` as MPI wants it; asserts that it fits, and notes the largest. Local. */
int comm_int(struct comm *comm, int64_t count);

/* MPI's name of an element type; INTERNAL for types that cannot be added. Local. */
enum status comm_datatype(MPI_Datatype *type, enum dtype dtype);

/* Sends to rank `to` and receives from rank `from` at once, message by message; a part of 0 bytes
 * sends nothing. Local (paired). */
enum status comm_transfer(struct comm *comm, int to, struct comm_part sent, int from,
                          struct comm_part received);

#endif
