/* Vocabulary tables (input embedding, output head) cut by rows over a vocabulary group.
 *
 * The V rows are cut into `slices` canonical slices whose borders depend on (V, slices) only: inner
 * borders are multiples of VOCAB_ROW_BLOCK, the last slice may be shorter and slices may be empty.
 * Member r of the group holds slices [first_slice, end_slice), a contiguous run, hence rows
 * [rows.begin, rows.end). Whatever is added over the vocabulary is made per slice and added along
 * the tree over slice ids (tree.h): for group sizes that are powers of two dividing `slices` the
 * result has the same bits for every group size. Other sizes work too and agree up to rounding
 * (statistics, which travel per slice, agree to the last bit for every size).
 *
 * A forward and backward pass of a head, for the tokens of all members together:
 *
 *   vocab_counts   how many tokens each member has            -> counts[size], N = their sum
 *   vocab_gather   hidden states, targets, weights of all members, kept in blocks by member
 *   the layer      per local slice: logits tile by tile -> per-slice statistics [slices_local, N]
 *   vocab_combine  -> statistics over the whole vocabulary [N]
 *   the layer      per local slice: dlogits tile by tile -> dH of the slice, added to the stack of
 *                  tree_depth(slices_local) buffers with tree_add_floats; dW rows straight into
 *                  the gradient of (tensor, member), see gradients.h
 *   vocab_scatter  dH over all slices, each member's own tokens back to it
 *
 * Letters: V vocabulary, N tokens of all members, n own tokens, C width.
 */
#ifndef SHARDING_VOCAB_H
#define SHARDING_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "sharding/comm.h"
#include "sharding/split.h"

/* A group has at most VOCAB_SLICES_MAX members. */
enum { VOCAB_SLICES_MAX = 256, VOCAB_ROW_BLOCK = 16 };

struct vocab {
  struct comm *group; /* borrowed; NULL: one member, which needs no communicator */
  int64_t size;       /* V */
  int64_t slices;     /* canonical slices of the whole vocabulary */
  int64_t first_slice, end_slice;
  struct split rows;                     /* this member's rows */
  int64_t borders[VOCAB_SLICES_MAX + 1]; /* slice s is rows [borders[s], borders[s + 1]) */
};

/* Cuts V rows into slices and the slices over the group. Local. MISMATCH when `slices` is outside
 * [1, VOCAB_SLICES_MAX], less than the members of the group, or `size` is not positive. */
enum status vocab_init(struct vocab *vocab, struct comm *group, int64_t size, int64_t slices);

static inline int64_t vocab_slices_local(const struct vocab *vocab) {
  return vocab->end_slice - vocab->first_slice;
}

/* Members of the group, and this one's place among them. Local. */
static inline int vocab_members(const struct vocab *vocab) {
  return vocab->group ? vocab->group->size : 1;
}

static inline int vocab_member(const struct vocab *vocab) {
  return vocab->group ? vocab->group->rank : 0;
}

/* Rows of canonical slice `slice`, and of member `rank` of the group. Local. */
struct split vocab_slice(const struct vocab *vocab, int64_t slice);
struct split vocab_rows_of(const struct vocab *vocab, int64_t rank);

/* The member that holds row `id`. 0 <= id < V. Local. */
int64_t vocab_owner(const struct vocab *vocab, int64_t id);

/* counts[r] = number of tokens of member r; returns their sum in `total`. Collective over the
 * group. */
enum status vocab_counts(struct vocab *vocab, int64_t *counts, int64_t *total, int64_t own);

/* all[N][row_bytes] = the rows of all members, member 0's first; own[n][row_bytes] are this
 * member's (may be their own place in `all`). Any element type. Collective over the group. */
enum status vocab_gather(struct vocab *vocab, void *all, const void *own, const int64_t *counts,
                         int64_t row_bytes);

/* Statistics of logits l over a set of rows. Each pointer is an array in [slices_local][N] order
 * given by the caller; NULL leaves a statistic out. All sums are relative to the maximum: they hold
 * sum over the rows of weight * exp(k * (l - maximum)).
 *
 * An empty slice, or one whose logits are all -inf, has maximum -INFINITY and sums 0. */
struct vocab_statistics {
  double *maximum;     /* max l; required */
  double *sum;         /* sum e^(l - max) */
  double *sum_squares; /* sum e^(2 (l - max)) */
  double *scaled[4];   /* sum w e^(l - max), for up to four weights w of the caller's choice */
  double *plain[4];    /* sum w: added as they are, without regard to the maximum (target logit:
                          the logit where the slice holds the target, else 0; sum of l; ...) */
};

/* Combines the statistics of all slices along the tree: maximum by max, the relative sums rescaled
 * to the larger maximum at each node in double. The arrays hold [slices_local][N] on entry; on
 * return their first N values are the statistics over the whole vocabulary, the same bits on every
 * member and for every group size. log-sum-exp = maximum + log(sum). Takes scratch of
 * N * slices * (number of statistics) doubles from `scratch` and returns it; while `scratch`
 * measures, only that. Collective over the group. */
enum status vocab_combine(struct vocab *vocab, const struct vocab_statistics *statistics, int64_t N,
                          struct arena *scratch);

/* own[n][C] = the sum over members of their `partial`[N][C], restricted to this member's tokens,
 * added along the tree over members (in MPI's order when their number is not a power of two).
 * `partial` is this member's tree sum over its local slices; it is spoiled. F32 or F64. Collective
 * over the group. */
enum status vocab_scatter(struct vocab *vocab, void *own, void *partial, const int64_t *counts,
                          int64_t C, enum dtype dtype);

/* own[i] = the table row of ids[i], i < n, fetched from the member that holds it. `table` are this
 * member's rows [rows][row_bytes], any element type; the result is exact. ids outside [0, V) are
 * DAMAGED, on every member. Takes scratch of about (n + most) * (row_bytes + 16) bytes from
 * `scratch` and returns it, `most` being the largest n of a member; while `scratch` measures, only
 * that, for most = n. Collective over the group. */
enum status vocab_lookup(struct vocab *vocab, void *own, const void *table, const int64_t *ids,
                         int64_t n, int64_t row_bytes, struct arena *scratch);

#endif
