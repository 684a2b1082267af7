/* The optimizer's running moments, in F32, or in bf16 with stochastic rounding.
 *
 * A moment of bf16 is rounded up with the probability of what is cut off, so that updates far below
 * its precision still count in the mean (methods: Gupta et al. 2015). The draws are functions of
 * (seed, tensor, update, global element), never of the layout.
 */
#ifndef STAGES_TRAIN_MOMENTS_H
#define STAGES_TRAIN_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* values[i] = moment first + i; `moments` is bf16 when `narrow`, else F32. Local. */
void moments_load(float *values, const void *moments, bool narrow, int64_t first, int64_t count);

/* Sets moments [first, first + count). When narrow, element i is rounded by 16 random bits: those
 * of bits[i] from `shift` (0 or 16) on. Local. */
void moments_store(void *moments, bool narrow, const float *values, int64_t first, int64_t count,
                   const uint32_t *bits, int shift);

#endif
