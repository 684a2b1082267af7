/* The fast kernels of processors: what they do better than the reference. */
#ifndef STAGES_MODEL_KERNELS_CPU_H
#define STAGES_MODEL_KERNELS_CPU_H

#include "stages/model/kernels/kernels.h"

/* Overwrites entries of a table that the reference has filled for F32 or BF16. Local. ENVIRONMENT
 * when a library refuses. */
enum status cpu_open(struct kernels *kernels);

#endif
