/* The longest common subsequence of two sequences of numbers. */
#ifndef PIPELINE_BASE_SUBSEQUENCE_H
#define PIPELINE_BASE_SUBSEQUENCE_H

#include <stddef.h>
#include <stdint.h>

/* Its length, of a[a_count] and b[b_count]; time goes with the product of the two. `row` is
 * scratch, [b_count + 1]. Local. */
int64_t subsequence_longest(int64_t *row, const uint64_t *a, size_t a_count, const uint64_t *b,
                            size_t b_count);

#endif
