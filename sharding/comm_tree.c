#include <string.h>

#include "sharding/add.h"
#include "sharding/comm_call.h"
#include "sharding/split.h"
#include "sharding/window.h"

enum { SMALL_COUNT = 2048 }; /* below this the number of messages matters more than their size */

struct array {
  char *values;
  int64_t element_bytes;
  enum dtype dtype;
};

static struct comm_part part(const struct array *array, struct split range) {
  return (struct comm_part){array->values + range.begin * array->element_bytes,
                            split_count(range) * array->element_bytes};
}

/* Sends one range to the partner and adds what it sends to another; one block at most. */
static enum status add_exchanged(struct comm *comm, const struct array *array, int partner,
                                 struct split sent, struct split kept) {
  const struct comm_part own = part(array, kept);
  const struct comm_part received = {comm->scratch.base, own.bytes};
  TRY(comm_transfer(comm, partner, part(array, sent), partner, received));
  add_arrays(own.data, received.data, split_count(kept), array->dtype);
  return STATUS_OK;
}

/* Every element goes through the tree: first pairs of ranks, then pairs of pairs, ... After
 * `distance` ranks are added, each keeps half of what it had, and the halves come back at the end.
 */
static enum status halve(struct comm *comm, const struct array *array, struct split range,
                         int distance) {
  if (distance >= comm->size) return STATUS_OK;
  const int partner = comm->rank ^ distance;
  const int64_t middle = range.begin + split_count(range) / 2;
  const struct split low = {range.begin, middle};
  const struct split high = {middle, range.end};
  const struct split kept = comm->rank & distance ? high : low;
  const struct split other = comm->rank & distance ? low : high;
  TRY(add_exchanged(comm, array, partner, other, kept));
  TRY(halve(comm, array, kept, 2 * distance));
  return comm_transfer(comm, partner, part(array, kept), partner, part(array, other));
}

static enum status add_whole(struct comm *comm, const struct array *array, struct split range) {
  for (int distance = 1; distance < comm->size; distance *= 2)
    TRY(add_exchanged(comm, array, comm->rank ^ distance, range, range));
  return STATUS_OK;
}

static enum status check(const struct comm *comm, enum dtype dtype) {
  CHECK(split_power_of_two(comm->size), STATUS_MISMATCH,
        "canonical sums need a power-of-two number of ranks, found %d; use 1, 2, 4, 8, ... or "
        "canonical: false",
        comm->size);
  CHECK(dtype == DTYPE_F32 || dtype == DTYPE_F64 || dtype == DTYPE_BF16, STATUS_INTERNAL,
        "canonical sums are for F32, F64 and BF16, not %s", dtype_name(dtype));
  return STATUS_OK;
}

static enum status sum_by_messages(struct comm *comm, const struct array *array, int64_t count) {
  const int64_t block = comm_block(comm, array->element_bytes);
  const bool small = count <= SMALL_COUNT && count <= block;
  const int64_t step = small ? count : 2 * block;
  for (int64_t i = 0; i < count; i += step) {
    const struct split range = {i, i + step < count ? i + step : count};
    TRY(small ? add_whole(comm, array, range) : halve(comm, array, range, 1));
  }
  return STATUS_OK;
}

enum status comm_tree_sum(struct comm *comm, void *values, int64_t count, enum dtype dtype) {
  TRY(check(comm, dtype));
  if (comm->size == 1) return STATUS_OK;
  const struct array array = {values, (int64_t)dtype_bytes(dtype), dtype};
  if (comm->window && comm->window->shared) return window_sum(comm->window, values, count, dtype);
  const double started = comm_enter(comm, "tree_sum", count * array.element_bytes);
  TRY(sum_by_messages(comm, &array, count));
  comm_leave(comm, started);
  return STATUS_OK;
}

/* Block `i` of a range; empty beyond its end. */
static struct split block_of(struct split range, int64_t block, int64_t i) {
  const struct split piece = {range.begin + i * block, range.begin + (i + 1) * block};
  return split_overlap(piece, range);
}

static enum status add_exchanged_blocks(struct comm *comm, const struct array *array, int partner,
                                        struct split sent, struct split kept) {
  const int64_t block = comm_block(comm, array->element_bytes);
  const int64_t longest =
      split_count(sent) > split_count(kept) ? split_count(sent) : split_count(kept);
  for (int64_t i = 0; i * block < longest; i++)
    TRY(add_exchanged(comm, array, partner, block_of(sent, block, i), block_of(kept, block, i)));
  return STATUS_OK;
}

static struct split range_of(const int64_t *borders, int rank) {
  return (struct split){borders[rank], borders[rank + 1]};
}

enum status comm_tree_scatter(struct comm *comm, void *mine, void *values, const int64_t *borders,
                              enum dtype dtype) {
  TRY(check(comm, dtype));
  const struct array array = {values, (int64_t)dtype_bytes(dtype), dtype};
  const double started =
      comm_enter(comm, "tree_scatter", borders[comm->size] * array.element_bytes);
  for (int distance = 1; distance < comm->size; distance *= 2)
    for (int r = comm->rank % (2 * distance); r < comm->size; r += 2 * distance)
      TRY(add_exchanged_blocks(comm, &array, comm->rank ^ distance, range_of(borders, r ^ distance),
                               range_of(borders, r)));
  const struct comm_part own = part(&array, range_of(borders, comm->rank));
  if (own.bytes > 0) memcpy(mine, own.data, (size_t)own.bytes);
  comm_leave(comm, started);
  return STATUS_OK;
}
