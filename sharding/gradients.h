/* Gradients of the parameters: accumulated over micro-shards, then added over ranks.
 *
 *   for each optimizer step
 *     for j in 0 .. grid_micro_steps - 1
 *       gradients_begin(g, j)
 *       backward pass: add to what gradients_at(&place, g, tensor, member) gives; once the last
 *         contribution to the tensor is in, gradients_done(g, tensor, member) - the sooner the
 *         better: in the last micro step this starts the exchange while backward goes on
 *       gradients_end(g)     (does gradients_done for the tensors that were not reported)
 *     gradients_finish(g)    (waits for the exchanges)
 *     gradients_norm, then the optimizer reads gradients_sum(g, tensor)
 *
 * Replicated tensors have one contributor a micro step, this rank: member is 0. For a tensor cut
 * over the vocabulary group each rank adds, to its own rows, the contributions of the tokens of
 * every member r, kept apart; gradients_done is called for r = 0, 1, ... in order. At micro step j
 * member r's tokens are micro-shard (first of member r) + j.
 *
 * Canonical mode keeps a stack of tree_depth(micro steps) buffers (for sliced tensors one of
 * them for each member; with one micro step, one of tree_depth(members) for all) and adds along the
 * tree over micro-shard ids: the same bits for every admissible number of ranks and every group
 * size. Fast mode adds into one buffer and lets MPI pick the order over ranks.
 *
 * A micro step's gradient that cannot be made in its place in a buffer is made in a working piece,
 * from the first gradients_at until gradients_done: open tensors late and end them early.
 *
 * Buffers are F32 or BF16. With BF16 every micro-shard's gradient and every sum of two is rounded
 * to nearest, along the same tree, so the bits stay the same for every layout; gradients take half
 * the memory and half the traffic, and always go through working pieces.
 *
 * With owners (ZeRO) and one micro step a rank, a replicated tensor's gradient goes to its owner
 * while the backward pass goes on, and only the owner keeps it (stage 2 of Rajbhandari et al.
 * 2020).
 *
 * Gradients are sums over tokens, not means: divide by the true global count in the optimizer.
 */
#ifndef SHARDING_GRADIENTS_H
#define SHARDING_GRADIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "sharding/grid.h"
#include "sharding/vocab.h"
#include "sharding/zero.h"

struct gradients_tensor {
  int64_t count;             /* elements held by this rank */
  const struct vocab *vocab; /* borrowed; NULL for a replicated tensor. When set, the tensor is
                                [rows of this member][count / rows], cut over grid.group */
  bool everywhere; /* the sum is needed on every rank that holds it, not on the owner only */
};

struct gradients; /* opaque: several ways of exchanging stand behind it */

struct gradients_setup {
  struct grid *grid;
  const struct zero *zero; /* NULL: sums are promised on every rank that holds the tensor, and not
                              on its owner only */
  const struct gradients_tensor *tensors; /* copied */
  int64_t count;
  enum dtype dtype;  /* of the buffers: F32 or BF16 */
  bool keeps; /* room for gradients_keep; needs owners, and no tensor that is `everywhere` */
  int64_t in_flight; /* elements sent to owners after which ranks wait for one another, which bounds
                        the pieces that a rank ahead holds; 0: 32 Mi */
};

/* Makes the buffers in `arena` (which may be measuring: then *gradients is not usable). Collective
 * over world. */
enum status gradients_init(struct gradients **gradients, const struct gradients_setup *setup,
                           struct arena *arena);

/* Frees what is not in the arena; accepts NULL. Collective over world. */
void gradients_free(struct gradients *gradients);

/* Opens micro step `j`; steps are opened in order, beginning with 0. Local. */
void gradients_begin(struct gradients *gradients, int64_t j);

/* *place = where to add this micro step's gradient of a tensor, [count] floats. Zeroed by the first
 * call of a micro step in canonical mode; in fast mode it may hold earlier micro steps: always add.
 * The address may differ from one micro step to the next; those of all members hold at the same
 * time until gradients_done. Local. ENVIRONMENT when memory is out. */
enum status gradients_at(float **place, struct gradients *gradients, int64_t tensor,
                         int64_t member);

/* Says that nothing more will be added to a tensor in this micro step. In the last micro step the
 * exchange may start: all ranks report tensors in the same order. Collective over world in the last
 * micro step, else local. */
enum status gradients_done(struct gradients *gradients, int64_t tensor, int64_t member);

/* Members of a tensor that are done in this micro step: 0 to group.size for sliced ones. Local. */
int64_t gradients_members_done(const struct gradients *gradients, int64_t tensor);

/* As adding `values` (NULL: zeros) to elements [first, first + count) of a tensor, all of them
 * final, without a working piece: for tiles of a vocabulary table that are complete when made. A
 * tensor given this way is not taken through gradients_at in the same micro step, and each of its
 * elements is given exactly once. Local; gradients_done follows after the last piece. */
void gradients_give(struct gradients *gradients, int64_t tensor, int64_t member, int64_t first,
                    int64_t count, const float *values);

/* Ends the micro step: gradients_done for every tensor and member not reported yet. */
enum status gradients_end(struct gradients *gradients);

/* Helps on the exchanges that were started. Local. */
enum status gradients_poll(struct gradients *gradients);

/* Waits for all exchanges. Afterwards gradients_sum is valid. Collective over world. */
enum status gradients_finish(struct gradients *gradients);

/* Gradients summed over all micro-shards and ranks. */
struct gradients_sum {
  void *values; /* borrowed, valid until the next gradients_begin */
  enum dtype dtype;
};

/* The sum of a tensor, on the ranks that it is promised on; its owner may change it in place.
 * Local. */
struct gradients_sum gradients_sum(const struct gradients *gradients, int64_t tensor);

/* values[i] = element first + i of a sum, and sum element first + i += values[i]. Local. */
void gradients_read(float *values, const struct gradients_sum *sum, int64_t first, int64_t count);
void gradients_add(const struct gradients_sum *sum, int64_t first, int64_t count,
                   const float *values);

/* Two objectives in one step. After gradients_finish of the first, gradients_keep sets its sums
 * aside, in F32 at their owners; after that of the second, gradients_mend makes their sum, but
 * takes from the second what works against the first: with k the kept sums and g the others, of all
 * tensors together, sums = k + g - min(0, <k, g>) / <k, k> k (arXiv 2001.06782, algorithm 1, on one
 * side). *cosine is that of the angle between both, 0 when either is zero. In an order that does
 * not depend on the layout. gradients_keep is local, gradients_mend collective over world. */
void gradients_keep(struct gradients *gradients);
enum status gradients_mend(struct gradients *gradients, double *cosine);

/* Seconds that this rank spent on the order of canonical sums so far: zeroing a place for each
 * micro-shard's contribution and adding it along the tree. Fast sums need none of it; 0 for them.
 * Local. */
double gradients_order_seconds(const struct gradients *gradients);

/* Bytes of working pieces so far, beside the arena. Local. */
size_t gradients_working_bytes(const struct gradients *gradients);

/* squares[i] = the sum of squares of the elements of tensor i over its whole (all members' rows),
 * [tensors], may be NULL; *norm = the square root of their sum. In double, in an order that does
 * not depend on the layout. Non-finite when any element is. Collective over world. */
enum status gradients_norm(struct gradients *gradients, double *norm, double *squares);

#endif
