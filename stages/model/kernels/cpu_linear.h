/* Linear maps of the table "cpu". */
#ifndef STAGES_MODEL_KERNELS_CPU_LINEAR_H
#define STAGES_MODEL_KERNELS_CPU_LINEAR_H

#include "stages/model/kernels/kernels.h"

/* Overwrite the entries of linear maps in a table for one element type. Local. */
void cpu_linear_f32(struct kernels *kernels);
void cpu_linear_bf16(struct kernels *kernels);

#endif
