/* What the files of gradients share. Only gradients*.c include this. */
#ifndef SHARDING_GRADIENTS_STATE_H
#define SHARDING_GRADIENTS_STATE_H

#include "sharding/gradients.h"
#include "sharding/pieces.h"
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
  void *levels;       /* [stacks][depth][total] of the buffers' type */
  struct comm *axis;  /* the ranks that hold the same elements */
  struct split ready; /* complete elements that wait for their exchange to start */
};

enum gradients_state { GRADIENTS_CLOSED, GRADIENTS_OPEN, GRADIENTS_GIVEN };

struct gradients_slot {
  int64_t count;
  const struct vocab *vocab;
  int kind;
  bool passes;                  /* the sum is not kept here, see gradients_pass.c */
  int64_t offset;               /* in a level of its kind, unless it passes */
  float **pieces;               /* [members] working pieces; NULL where there is none */
  int64_t done;                 /* members that are done in this micro step */
  enum gradients_state *states; /* [members] */
};

/* A contribution on its way to its owner. */
struct gradients_passing {
  float *piece;
  int64_t number; /* in the window's queue */
};

/* What is squared in one go: elements [first, first + count) of a tensor. */
struct gradients_unit {
  int64_t tensor, first, count;
  bool mine; /* computed by this rank */
};

struct gradients {
  struct grid *grid;
  const struct zero *zero;
  enum dtype dtype;
  int64_t tensors;
  int64_t micro_step;
  struct gradients_kind kinds[GRADIENTS_KINDS];
  struct gradients_slot *slots; /* [tensors] */
  double *squares;              /* [tensors] */
  int64_t units;                /* of all tensors */
  double *unit_squares; /* [units] a replicated tensor is one unit, a sliced one a unit per slice */
  struct gradients_unit *unit_places; /* [units] */
  float **kept; /* [tensors] sums set aside, of what this rank computes; NULL without `keeps` */
  struct pieces working;
  struct gradients_passing *passing; /* [tensors] those in flight, the oldest first */
  int64_t passing_count;
  double order_seconds; /* see gradients_order_seconds */
  int64_t sent, sent_most; /* elements since all was waited for; the same on every rank */
};

enum { GRADIENTS_PADDING = 16 }; /* floats: tensors begin on cache lines */

static inline int64_t gradients_padded(int64_t count) {
  return (count + GRADIENTS_PADDING - 1) / GRADIENTS_PADDING * GRADIENTS_PADDING;
}

static inline struct gradients_kind *gradients_kind_of(struct gradients *gradients,
                                                       const struct gradients_slot *slot) {
  return &gradients->kinds[slot->kind];
}

/* Element `i` of the levels of a kind. */
static inline void *gradients_level(const struct gradients *gradients,
                                    const struct gradients_kind *kind, int64_t i) {
  return (unsigned char *)kind->levels + (size_t)i * dtype_bytes(gradients->dtype);
}

/* Lists the units of the norm (gradients_norm.c). Local. */
void gradients_list_units(struct gradients *gradients);

/* *total = the dot product of two operands over all tensors, whose shares are left in
 * gradients->squares. Collective over world. */
enum gradients_operand { GRADIENTS_PRESENT, GRADIENTS_KEPT };
enum status gradients_dot(struct gradients *gradients, enum gradients_operand a,
                          enum gradients_operand b, double *total);

/* Takes room for the sums that are set aside (gradients_keep.c). Local. */
void gradients_keep_init(struct gradients *plan, const struct gradients_setup *setup,
                         struct arena *arena);

/* Whether a rank only passes its contribution to a tensor on. Local. */
bool gradients_passes(const struct gradients_setup *setup, int64_t tensor);

/* Whether replicated tensors are exchanged one by one, some ranks keeping the sum. Local. */
bool gradients_pass_any(const struct gradients *gradients);

/* Exchanges a tensor that is complete on this rank; `piece` holds it where it passes, and is taken
 * over. Collective over world. */
enum status gradients_pass(struct gradients *gradients, int64_t tensor, float *piece);

/* Waits for all that is on its way. Collective over world. */
enum status gradients_pass_finish(struct gradients *gradients);

/* Called when a tensor is complete on this rank: starts the exchange once enough elements are.
 * Collective over the kind's axis. */
enum status gradients_ready(struct gradients *gradients, int64_t tensor);

#endif
