/* What the files of gradients share. Only gradients*.c include this. */
#ifndef SHARDING_GRADIENTS_STATE_H
#define SHARDING_GRADIENTS_STATE_H

#include "sharding/gradients.h"
#include "sharding/tree.h"

enum { GRADIENTS_REPLICATED, GRADIENTS_SLICED, GRADIENTS_KINDS };

/* The tensors of one kind lie side by side in every level, so that a run of them is exchanged as
 * one array. */
struct gradients_kind {
  int64_t total;      /* elements of a level */
  int64_t members;    /* contributors in a micro step */
  int64_t stacks;     /* stacks of levels, each the subtree of one member, or one for all */
  int64_t leaves;     /* of each stack */
  int64_t depth;      /* levels of each stack */
  float *levels;      /* [stacks][depth][total] */
  struct comm *axis;  /* the ranks that hold the same elements */
  struct split ready; /* complete elements that wait for their exchange to start */
};

enum gradients_state { GRADIENTS_CLOSED, GRADIENTS_OPEN, GRADIENTS_GIVEN };

struct gradients_slot {
  int64_t count;
  const struct vocab *vocab;
  int kind;
  int64_t offset;               /* in a level of its kind */
  float *working;               /* [members][count]; NULL when tiled or not needed */
  int64_t done;                 /* members that are done in this micro step */
  enum gradients_state *states; /* [members] */
};

struct gradients {
  struct grid *grid;
  const struct zero *zero;
  int64_t tensors;
  int64_t micro_step;
  struct gradients_kind kinds[GRADIENTS_KINDS];
  struct gradients_slot *slots; /* [tensors] */
  double *squares;              /* [tensors] */
  int64_t units;                /* entries of `unit_squares` */
  double *unit_squares;         /* a replicated tensor is one unit, a sliced one a unit per slice */
};

enum { GRADIENTS_PADDING = 16 }; /* floats: tensors begin on cache lines */

static inline int64_t gradients_padded(int64_t count) {
  return (count + GRADIENTS_PADDING - 1) / GRADIENTS_PADDING * GRADIENTS_PADDING;
}

static inline struct gradients_kind *gradients_kind_of(struct gradients *gradients,
                                                       const struct gradients_slot *slot) {
  return &gradients->kinds[slot->kind];
}

/* Called when a tensor is complete on this rank: starts the exchange once enough elements are.
 * Collective over the kind's axis. */
enum status gradients_ready(struct gradients *gradients, const struct gradients_slot *slot);

#endif
