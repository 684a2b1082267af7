/* The layout of ranks.
 *
 * Tokens are split over all ranks of the world for the trunk. Consecutive ranks form vocabulary
 * groups of `group.size` ranks, which share the rows of the vocabulary tables: world rank =
 * group index * group.size + place in the group. Ranks with the same place in their groups hold the
 * same rows; they form `across`.
 *
 * The global batch is cut into `micro_shards` micro-shards, whatever the number of ranks. Rank r
 * works on a contiguous run of them, the same number on every rank, one after the other; micro step
 * j of rank r is micro-shard shards.begin + j.
 */
#ifndef SHARDING_GRID_H
#define SHARDING_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "sharding/comm.h"
#include "sharding/split.h"

struct grid {
  struct comm *world; /* borrowed */
  struct comm group;  /* the vocabulary group of this rank */
  struct comm across; /* the ranks that hold the same rows as this one */
  int64_t micro_shards;
  struct split shards; /* micro-shards of this rank */
  bool canonical;      /* sums follow the tree (tree.h); otherwise MPI's order */
};

struct grid_options {
  int64_t group_size;   /* ranks of a vocabulary group; 0 = 1 */
  int64_t micro_shards; /* 0 = one a rank */
  int64_t slices;       /* canonical slices of the vocabulary; 0 = not checked */
  bool canonical;
  int ranks_per_node; /* 0, or pretends smaller nodes than there are (window.h) */
};

/* Seconds that this rank has spent in exchanges, or waiting for them, since the start: what other
 * work did not hide. Local. */
double grid_exposed_seconds(const struct grid *grid);

/* Lays the world out and opens windows (window.h) for the sums of gradients. Collective over world.
 * MISMATCH, listing what is admissible, when group_size does not divide the number of ranks, the
 * number of ranks does not divide micro_shards, or, in canonical mode, ranks and micro_shards, or
 * group_size and slices, are not admissible (split_admissible). */
enum status grid_init(struct grid *grid, struct comm *world, const struct grid_options *options);

/* Frees the communicators; accepts a zeroed grid. Collective over world. */
void grid_free(struct grid *grid);

/* The checks of grid_init alone, for `ranks` ranks. Local. */
enum status grid_check(int64_t ranks, const struct grid_options *options);

/* Micro steps of each rank in a step. Local. */
static inline int64_t grid_micro_steps(const struct grid *grid) {
  return split_count(grid->shards);
}

/* totals[i] = the sum over all micro-shards of value i, added along the tree over micro-shard ids:
 * the same bits for any number of ranks. values[j * count + i] is value i of micro step j. For
 * losses and true token counts. Collective over world. */
enum status grid_sum_scalars(struct grid *grid, double *totals, const double *values,
                             int64_t count);

#endif
