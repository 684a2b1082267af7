/* Vectorised kernels of the table "cpu", one set for each element type and instruction set. */
#ifndef STAGES_MODEL_KERNELS_CPU_SIMD_H
#define STAGES_MODEL_KERNELS_CPU_SIMD_H

#include "stages/model/kernels/kernels.h"

/* Each overwrites entries of a table of its element type. To be called where the processor has the
 * instructions of its name only. Local. */
void cpu_f32_avx2(struct kernels *kernels);
void cpu_f32_avx512(struct kernels *kernels);
void cpu_bf16_avx2(struct kernels *kernels);
void cpu_bf16_avx512(struct kernels *kernels);
void cpu_bf16_avx512bf16(struct kernels *kernels);
void cpu_bf16_amx(struct kernels *kernels);

#endif
