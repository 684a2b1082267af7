/* Sums in the order of one fixed binary tree over leaf ids, so that the result has the same bits
 * wherever the leaves were made.
 *
 * The tree over n leaves halves its range [0, n): the left child takes the first (n + 1) / 2
 * leaves. For an admissible rank count (split_admissible) each rank's contiguous run of n / ranks
 * leaves is one subtree, and comm_tree_sum adds the upper part of the tree.
 *
 * Leaves are added in the order of their ids into a stack of tree_depth(n) buffers ("levels"), each
 * of the size of a leaf. Which buffer a leaf goes to depends on (n, leaf) only, so there is no
 * state: different elements of a leaf may be added at different times. After the last leaf, level 0
 * is the sum. Levels need not be cleared first.
 */
#ifndef SHARDING_TREE_H
#define SHARDING_TREE_H

#include <stdint.h>

/* Buffers needed to add `leaves` leaves: 1 for 1 or 2 leaves, log2(leaves) for powers of two.
 * Local. */
int64_t tree_depth(int64_t leaves);

/* Where leaf `leaf` of `leaves` goes. `level` is the buffer it is written to (merges == 0) or added
 * to (merges >= 1); then, merges - 1 times, buffer `level` is added to buffer level - 1 and level
 * goes down by one. Local. */
struct tree_place {
  int64_t level;
  int64_t merges;
};
struct tree_place tree_place(int64_t leaves, int64_t leaf);

/* The stack of buffers: level l begins at levels + l * stride. */
struct tree_floats {
  float *levels; /* borrowed */
  int64_t stride;
  int64_t leaves;
};

/* Adds elements [first, first + count) of leaf `leaf`; `values` are those elements. `values` may be
 * the very place tree_leaf_floats returned. Local. */
void tree_add_floats(const struct tree_floats *tree, int64_t leaf, int64_t first, int64_t count,
                     const float *values);

/* The same of bf16 buffers: leaves are rounded to nearest, and so is every sum. */
struct tree_bf16 {
  uint16_t *levels; /* borrowed */
  int64_t stride;
  int64_t leaves;
};
void tree_add_bf16(const struct tree_bf16 *tree, int64_t leaf, int64_t first, int64_t count,
                   const float *values);

/* Where to write leaf `leaf` so that tree_add_floats has nothing to copy; NULL when the leaf is
 * added to an earlier one and needs memory of its own. Local. */
float *tree_leaf_floats(const struct tree_floats *tree, int64_t leaf);

/* The tree sum of values[0], values[stride], ..., `leaves` of them; 0 for none. Local. */
double tree_sum_doubles(const double *values, int64_t stride, int64_t leaves);
float tree_sum_floats(const float *values, int64_t stride, int64_t leaves);

#endif
