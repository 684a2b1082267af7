/* Arrays of a tape: places in arrays of elements and of the sum type, and sums on the host's side.
 * Everything is harmless on a measuring tape, where arrays are NULL.
 */
#ifndef STAGES_MODEL_TAPE_ARRAY_H
#define STAGES_MODEL_TAPE_ARRAY_H

#include <stdint.h>

#include "stages/model/tape/tape.h"

/* The place of element, or of sum, number `index` of an array. Local. */
void *array_at(const struct tape *tape, const void *elements, int64_t index);
void *array_sum_at(const struct tape *tape, const void *sums, int64_t index);

/* Memory of the tape for `count` elements, for `count` sums, and for zeroed sums. Local. */
void *array_elements(struct tape *tape, int64_t count);
void *array_sums(struct tape *tape, int64_t count);
void *array_sums_zeroed(struct tape *tape, int64_t count);

/* Sets sums to zero. Local. */
void array_clear_sums(const struct tape *tape, void *sums, int64_t count);

/* Sums from numbers of the host, and back. Local. */
void array_put_sums(const struct tape *tape, void *sums, const double *values, int64_t count);
void array_put_float_sums(const struct tape *tape, void *sums, const float *values, int64_t count);
void array_get_sums(const struct tape *tape, double *values, const void *sums, int64_t count);

/* Adds dy[rows, cols] (rows dy_stride apart) to the gradient of a value that has this shape, when
 * it needs one. Local. */
void array_add_gradient(struct tape *tape, struct value *value, const void *dy, int64_t dy_stride);

static inline bool array_is_contiguous(const struct value *value) {
  return value->stride == value->cols;
}

#endif
