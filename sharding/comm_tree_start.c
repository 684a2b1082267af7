/* The sum along the tree over ranks, an exchange at a time, for whoever has other work to do in
 * between. With P = 2^L ranks, exchanges 0 .. L - 1 halve what a rank adds, and L .. 2 L - 1 bring
 * the halves back.
 */
#include <assert.h>
#include <limits.h>

#include "sharding/add.h"
#include "sharding/comm_call.h"
#include "sharding/split.h"

static int levels_of(const struct comm *comm) {
  int levels = 0;
  while (1 << levels < comm->size) levels++;
  return levels;
}

/* What this rank adds after `halvings` halvings; *other receives the half that it gave away in the
 * last of them. */
static struct split kept_after(const struct comm *comm, int64_t count, int halvings,
                               struct split *other) {
  struct split range = {0, count};
  for (int i = 0; i < halvings; i++) {
    const int64_t middle = range.begin + split_count(range) / 2;
    const struct split low = {range.begin, middle}, high = {middle, range.end};
    const bool upper = comm->rank >> i & 1;
    range = upper ? high : low;
    *other = upper ? low : high;
  }
  return range;
}

int64_t comm_tree_scratch(const struct comm *comm, int64_t count, enum dtype dtype) {
  const int64_t bytes = (int64_t)dtype_bytes(dtype);
  if (split_power_of_two(comm->size)) return (count + 1) / 2 * bytes;
  return dtype == DTYPE_BF16 ? count * (int64_t)sizeof(float) : 0;
}

/* Posts both messages of an exchange; empty parts send nothing. */
static enum status post(struct comm *comm, struct comm_tree_request *request, int partner,
                        struct comm_part sent, struct comm_part received) {
  request->parts[0] = request->parts[1] = MPI_REQUEST_NULL;
  if (received.bytes > 0)
    MPI_TRY("MPI_Irecv", MPI_Irecv(received.data, comm_int(comm, received.bytes), MPI_BYTE, partner,
                                   request->tag, comm->handle, &request->parts[0]));
  if (sent.bytes > 0)
    MPI_TRY("MPI_Isend", MPI_Isend(sent.data, comm_int(comm, sent.bytes), MPI_BYTE, partner,
                                   request->tag, comm->handle, &request->parts[1]));
  return STATUS_OK;
}

static struct comm_part part(const struct comm_tree_request *request, struct split range) {
  const int64_t bytes = (int64_t)dtype_bytes(request->dtype);
  return (struct comm_part){request->values + range.begin * bytes, split_count(range) * bytes};
}

/* The halving that an exchange makes or takes back. */
static int level_at(const struct comm *comm, int step) {
  const int levels = levels_of(comm);
  return step < levels ? step : 2 * levels - 1 - step;
}

static enum status begin_exchange(struct comm *comm, struct comm_tree_request *request) {
  const int level = level_at(comm, request->step);
  const bool adds = request->step < levels_of(comm);
  struct split other = {0, 0};
  const struct split kept = kept_after(comm, request->count, level + 1, &other);
  const struct comm_part given = part(request, other), own = part(request, kept);
  const struct comm_part apart = {request->scratch, own.bytes};
  return post(comm, request, comm->rank ^ (1 << level), adds ? given : own, adds ? apart : given);
}

static void end_exchange(const struct comm *comm, const struct comm_tree_request *request) {
  struct split other = {0, 0};
  if (request->step >= levels_of(comm)) return;
  const struct split kept = kept_after(comm, request->count, request->step + 1, &other);
  add_arrays(part(request, kept).data, request->scratch, split_count(kept), request->dtype);
}

/* Over other counts, bf16 travels as F32. */
static enum status start_whole(struct comm *comm, struct comm_tree_request *request) {
  if (request->dtype != DTYPE_BF16)
    return comm_allreduce_start(comm, &request->whole, request->values, request->count,
                                request->dtype);
  add_widen(request->scratch, (const uint16_t *)(void *)request->values, request->count);
  return comm_allreduce_start(comm, &request->whole, request->scratch, request->count, DTYPE_F32);
}

static enum status test_whole(struct comm *comm, struct comm_tree_request *request) {
  TRY(comm_test(comm, &request->whole, &request->ends));
  if (request->ends && request->dtype == DTYPE_BF16)
    add_round((uint16_t *)(void *)request->values, request->scratch, request->count);
  return STATUS_OK;
}

enum status comm_tree_start(struct comm *comm, struct comm_tree_request *request, void *values,
                            int64_t count, enum dtype dtype, void *scratch) {
  assert(count * (int64_t)dtype_bytes(dtype) <= INT_MAX);
  *request = (struct comm_tree_request){.values = values,
                                        .scratch = scratch,
                                        .count = count,
                                        .dtype = dtype,
                                        .ends = comm->size == 1,
                                        .parts = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
  request->tag = COMM_TREE_TAG + (int)(comm->tree_sums++ % COMM_TREE_TAGS);
  if (request->ends) return STATUS_OK;
  if (!split_power_of_two(comm->size)) return start_whole(comm, request);
  const double started = comm_enter(comm, "tree_start", count * (int64_t)dtype_bytes(dtype));
  TRY(begin_exchange(comm, request));
  comm_leave(comm, started);
  return STATUS_OK;
}

static enum status go_on(struct comm *comm, struct comm_tree_request *request) {
  while (!request->ends) {
    int here = 0;
    MPI_TRY("MPI_Testall", MPI_Testall(2, request->parts, &here, MPI_STATUSES_IGNORE));
    if (!here) return STATUS_OK;
    end_exchange(comm, request);
    request->ends = ++request->step == 2 * levels_of(comm);
    if (!request->ends) TRY(begin_exchange(comm, request));
  }
  return STATUS_OK;
}

enum status comm_tree_test(struct comm *comm, struct comm_tree_request *request, bool *done) {
  const double started = MPI_Wtime();
  if (!request->ends)
    TRY(split_power_of_two(comm->size) ? go_on(comm, request) : test_whole(comm, request));
  *done = request->ends;
  comm_leave(comm, started);
  return STATUS_OK;
}
