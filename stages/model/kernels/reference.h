/* The specification of every kernel: plain loops, one source for all element types. */
#ifndef STAGES_MODEL_KERNELS_REFERENCE_H
#define STAGES_MODEL_KERNELS_REFERENCE_H

#include "stages/model/kernels/kernels.h"

/* Fill the table for one element type. Sums are made in the sum type, in the order of indices.
 * Local. */
void reference_f64(struct kernels *kernels);
void reference_f32(struct kernels *kernels);
void reference_bf16(struct kernels *kernels);

#endif
