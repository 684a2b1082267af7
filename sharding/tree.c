#include "sharding/tree.h"

#include <string.h>

#include "sharding/add.h"

/* Walks from the root to a leaf. `pending` counts left siblings that wait on the way (buffers in
 * use), `merges` the right turns at the end of the way (nodes that this leaf completes). */
static struct tree_place walk(int64_t leaves, int64_t leaf) {
  int64_t pending = 0;
  int64_t merges = 0;
  for (int64_t left; leaves > 1; leaves = left) {
    left = (leaves + 1) / 2;
    if (leaf < left) {
      merges = 0;
      continue;
    }
    leaf -= left;
    left = leaves - left;
    pending++;
    merges++;
  }
  return (struct tree_place){pending, merges};
}

struct tree_place tree_place(int64_t leaves, int64_t leaf) {
  struct tree_place place = walk(leaves, leaf);
  if (place.merges > 0) place.level--;
  return place;
}

int64_t tree_depth(int64_t leaves) {
  int64_t depth = 1;
  for (int64_t leaf = 0; leaf < leaves; leaf++) {
    const struct tree_place place = tree_place(leaves, leaf);
    if (place.level + 1 > depth) depth = place.level + 1;
  }
  return depth;
}

void tree_add_floats(const struct tree_floats *tree, int64_t leaf, int64_t first, int64_t count,
                     const float *values) {
  const struct tree_place place = tree_place(tree->leaves, leaf);
  float *level = tree->levels + place.level * tree->stride + first;
  if (place.merges == 0) {
    if (level != values) memcpy(level, values, (size_t)count * sizeof *values);
    return;
  }
  add_arrays(level, values, count, DTYPE_F32);
  for (int64_t i = 1; i < place.merges; i++, level -= tree->stride)
    add_arrays(level - tree->stride, level, count, DTYPE_F32);
}

void tree_add_bf16(const struct tree_bf16 *tree, int64_t leaf, int64_t first, int64_t count,
                   const float *values) {
  const struct tree_place place = tree_place(tree->leaves, leaf);
  uint16_t *level = tree->levels + place.level * tree->stride + first;
  if (place.merges == 0) {
    add_round(level, values, count);
    return;
  }
  add_rounded(level, values, count);
  for (int64_t i = 1; i < place.merges; i++, level -= tree->stride)
    add_arrays(level - tree->stride, level, count, DTYPE_BF16);
}

float *tree_leaf_floats(const struct tree_floats *tree, int64_t leaf) {
  const struct tree_place place = tree_place(tree->leaves, leaf);
  return place.merges == 0 ? tree->levels + place.level * tree->stride : NULL;
}

double tree_sum_doubles(const double *values, int64_t stride, int64_t leaves) {
  if (leaves <= 0) return 0;
  if (leaves == 1) return values[0];
  const int64_t left = (leaves + 1) / 2;
  return tree_sum_doubles(values, stride, left) +
         tree_sum_doubles(values + left * stride, stride, leaves - left);
}

float tree_sum_floats(const float *values, int64_t stride, int64_t leaves) {
  if (leaves <= 0) return 0;
  if (leaves == 1) return values[0];
  const int64_t left = (leaves + 1) / 2;
  return tree_sum_floats(values, stride, left) +
         tree_sum_floats(values + left * stride, stride, leaves - left);
}
