/* Sums of arrays, element by element. */
#ifndef SHARDING_ADD_H
#define SHARDING_ADD_H

#include <stdint.h>

#include "pipeline/base/dtype.h"

/* sum[i] += values[i] for F32, F64, or BF16, which is rounded to nearest after each addition. The
 * arrays do not overlap. Local. */
void add_arrays(void *sum, const void *values, int64_t count, enum dtype dtype);

/* sum[i] += values[i], each value rounded to bf16 before and the sum after. Local. */
void add_rounded(uint16_t *sum, const float *values, int64_t count);

/* rounded[i] = values[i] rounded to bf16, and back. Local. */
void add_round(uint16_t *rounded, const float *values, int64_t count);
void add_widen(float *values, const uint16_t *rounded, int64_t count);

#endif
