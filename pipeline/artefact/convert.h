/* Elements of files turned into the types that code computes with. Byte order and alignment of the
 * input are those of a file: none is assumed.
 */
#ifndef PIPELINE_ARTEFACT_CONVERT_H
#define PIPELINE_ARTEFACT_CONVERT_H

#include <stdint.h>

#include "pipeline/base/dtype.h"
#include "pipeline/base/error.h"

/* out[i] = element i of `count` elements of F32, F64, F16 or BF16, rounded to nearest. Local.
 * MISMATCH for other types. */
enum status convert_to_float(float *out, const void *in, enum dtype dtype, int64_t count);

/* out[i] = element i of `count` elements of an integer type. Local. MISMATCH for other types;
 * DAMAGED, naming the element, when a value does not fit. */
enum status convert_to_int32(int32_t *out, const void *in, enum dtype dtype, int64_t count);

#endif
