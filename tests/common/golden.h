/* Arrays made from a name by a formula, the same as tests/golden/values.py makes them: so that
 * golden numbers need no stored weights.
 */
#ifndef TESTS_COMMON_GOLDEN_H
#define TESTS_COMMON_GOLDEN_H

#include <stdint.h>

#include "stages/model/tape/param.h"

/* The number in [-1, 1), of 24 bits, at `index` of the array called `name`. */
double golden_uniform(const char *name, int64_t index);

/* values[i] = offset + scale * uniform. */
void golden_fill(float *values, int64_t count, const char *name, double scale, double offset);

/* Fills a bound F32 parameter as `parameter` of values.py does; kernels that checkpoints store [in,
 * out] are filled transposed. */
void golden_fill_param(const struct param *param);

/* A token id in [0, vocabulary). */
int32_t golden_id(const char *name, int64_t index, int64_t vocabulary);

/* Product of row[cols] with the fixed vector called `name`. */
double golden_project(const char *name, const float *row, int64_t cols);

#endif
