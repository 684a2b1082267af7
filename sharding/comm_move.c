#include <string.h>

#include "sharding/comm_call.h"

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

enum status comm_transfer(struct comm *comm, int to, struct comm_part sent, int from,
                          struct comm_part received) {
  const int64_t block = comm_block(comm, 1);
  char *out = sent.data;
  char *in = received.data;
  for (int64_t i = 0; i < sent.bytes || i < received.bytes; i += block) {
    const int64_t send = i < sent.bytes ? smaller(block, sent.bytes - i) : 0;
    const int64_t receive = i < received.bytes ? smaller(block, received.bytes - i) : 0;
    MPI_TRY("MPI_Sendrecv",
            MPI_Sendrecv(send ? out + i : NULL, comm_int(comm, send), MPI_BYTE,
                         send ? to : MPI_PROC_NULL, COMM_TAG, receive ? in + i : NULL,
                         comm_int(comm, receive), MPI_BYTE, receive ? from : MPI_PROC_NULL,
                         COMM_TAG, comm->handle, MPI_STATUS_IGNORE));
  }
  return STATUS_OK;
}

enum status comm_broadcast(struct comm *comm, void *data, int64_t bytes, int root) {
  const double started = comm_enter(comm, "broadcast", bytes);
  const int64_t block = comm_block(comm, 1);
  for (int64_t i = 0; comm->size > 1 && i < bytes; i += block)
    MPI_TRY("MPI_Bcast", MPI_Bcast((char *)data + i, comm_int(comm, smaller(block, bytes - i)),
                                   MPI_BYTE, root, comm->handle));
  comm_leave(comm, started);
  return STATUS_OK;
}

/* Offset of rank r's bytes; `each` bytes a rank when no counts are given. */
static int64_t offset_of(const int64_t *counts, int64_t each, int rank) {
  if (!counts) return each * rank;
  int64_t offset = 0;
  for (int r = 0; r < rank; r++) offset += counts[r];
  return offset;
}

static struct comm_part part_of(char *all, const int64_t *counts, int64_t each, int rank) {
  return (struct comm_part){all + offset_of(counts, each, rank), counts ? counts[rank] : each};
}

/* Ring: in step k every rank passes on what it received in step k - 1. */
static enum status ring(struct comm *comm, char *all, const void *mine, const int64_t *counts,
                        int64_t each) {
  const int size = comm->size;
  const struct comm_part own = part_of(all, counts, each, comm->rank);
  if (own.bytes > 0 && own.data != mine) memmove(own.data, mine, (size_t)own.bytes);
  for (int k = 0; k < size - 1; k++) {
    const int sent = (comm->rank - k + size) % size;
    const int received = (comm->rank - k - 1 + 2 * size) % size;
    TRY(comm_transfer(comm, (comm->rank + 1) % size, part_of(all, counts, each, sent),
                      (comm->rank - 1 + size) % size, part_of(all, counts, each, received)));
  }
  return STATUS_OK;
}

enum status comm_allgather(struct comm *comm, void *all, const void *mine, int64_t bytes) {
  const double started = comm_enter(comm, "allgather", bytes);
  if (bytes * comm->size > comm->block_bytes) {
    TRY(ring(comm, all, mine, NULL, bytes));
  } else if (bytes > 0) {
    char *own = (char *)all + bytes * comm->rank;
    if (own != mine) memmove(own, mine, (size_t)bytes);
    MPI_TRY("MPI_Allgather", MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all,
                                           comm_int(comm, bytes), MPI_BYTE, comm->handle));
  }
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_allgatherv(struct comm *comm, void *all, const void *mine,
                            const int64_t *bytes_of_rank) {
  const double started = comm_enter(comm, "allgatherv", bytes_of_rank[comm->rank]);
  TRY(ring(comm, all, mine, bytes_of_rank, 0));
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_gather(struct comm *comm, void *all, const void *mine, int64_t bytes, int root) {
  const double started = comm_enter(comm, "gather", bytes);
  const struct comm_part own = {(void *)(uintptr_t)mine, bytes};
  if (comm->rank != root) TRY(comm_transfer(comm, root, own, 0, (struct comm_part){0}));
  for (int r = 0; comm->rank == root && r < comm->size; r++) {
    const struct comm_part place = part_of(all, NULL, bytes, r);
    if (r == root && bytes > 0) memmove(place.data, mine, (size_t)bytes);
    if (r != root) TRY(comm_transfer(comm, 0, (struct comm_part){0}, r, place));
  }
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_alltoallv(struct comm *comm, void *received, const int64_t *received_bytes,
                           const void *sent, const int64_t *sent_bytes) {
  const int size = comm->size;
  char *out = (char *)(uintptr_t)sent;
  const double started = comm_enter(comm, "alltoallv", offset_of(sent_bytes, 0, size));
  const struct comm_part own = part_of(received, received_bytes, 0, comm->rank);
  if (own.bytes > 0)
    memcpy(own.data, out + offset_of(sent_bytes, 0, comm->rank), (size_t)own.bytes);
  for (int k = 1; k < size; k++) {
    const int to = (comm->rank + k) % size;
    const int from = (comm->rank - k + size) % size;
    TRY(comm_transfer(comm, to, part_of(out, sent_bytes, 0, to), from,
                      part_of(received, received_bytes, 0, from)));
  }
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_send(struct comm *comm, const void *data, int64_t bytes, int peer) {
  const double started = comm_enter(comm, "send", bytes);
  const struct comm_part sent = {(void *)(uintptr_t)data, bytes};
  TRY(comm_transfer(comm, peer, sent, 0, (struct comm_part){0}));
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_receive(struct comm *comm, void *data, int64_t bytes, int peer) {
  const double started = comm_enter(comm, "receive", bytes);
  TRY(comm_transfer(comm, 0, (struct comm_part){0}, peer, (struct comm_part){data, bytes}));
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_exchange(struct comm *comm, int to, struct comm_part sent, int from,
                          struct comm_part received) {
  const double started = comm_enter(comm, "exchange", sent.bytes);
  TRY(comm_transfer(comm, to, sent, from, received));
  comm_leave(comm, started);
  return STATUS_OK;
}

enum status comm_barrier(struct comm *comm) {
  const double started = comm_enter(comm, "barrier", 0);
  MPI_TRY("MPI_Barrier", MPI_Barrier(comm->handle));
  comm_leave(comm, started);
  return STATUS_OK;
}
