/* ZeRO stage 1: the optimizer's state of each tensor exists on one rank, its owner, which updates
 * the tensor and shares the new weights.
 *
 * A replicated tensor is owned by one rank of the world. A sliced tensor (rows of a vocabulary
 * table) is owned, slice by slice, by one of the ranks that hold the same rows (grid.across); with
 * one vocabulary group every rank owns its own rows. Tensors are whole: Muon needs matrices.
 */
#ifndef SHARDING_ZERO_H
#define SHARDING_ZERO_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "sharding/grid.h"

struct zero_tensor {
  double cost; /* of owning it, the same on every rank: bytes of state, or bytes + update FLOP /
                  (FLOP per byte) */
  bool sliced;
};

struct zero {
  struct grid *grid; /* borrowed */
  int64_t tensors;
  int *owner;   /* [tensors] rank in the tensor's axis (world or across) */
  bool *sliced; /* [tensors] */
};

struct zero_cost {
  double cost;
  int64_t tensor;
};

/* owner[items[i].tensor] for `count` items on `ranks` ranks: the dearest first, each to the rank
 * with the least load so far (ties: lower tensor, lower rank). Adds the costs to `loads`[ranks];
 * sorts `items`. Same result everywhere. Local. */
void zero_assign(int *owner, struct zero_cost *items, int64_t count, double *loads, int ranks);

/* Picks owners: sliced tensors over `across`, then the others over the world so that the sum of
 * both is level. The arrays of `zero` are taken from `arena`; while it measures, only that. Local.
 */
enum status zero_init(struct zero *zero, struct grid *grid, const struct zero_tensor *tensors,
                      int64_t count, struct arena *arena);

/* The communicator of the ranks that hold a tensor. Borrowed. Local. */
struct comm *zero_axis(const struct zero *zero, int64_t tensor);

/* Whether this rank owns a tensor. Local. */
bool zero_owns(const struct zero *zero, int64_t tensor);

/* Copies a tensor from its owner to all ranks that hold it. Collective over the tensor's axis. */
enum status zero_share(struct zero *zero, int64_t tensor, void *weights, int64_t bytes);

#endif
