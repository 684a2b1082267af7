/* Kernels that do nothing, for measuring tapes. */
#ifndef STAGES_MODEL_KERNELS_MEASURE_H
#define STAGES_MODEL_KERNELS_MEASURE_H

#include "stages/model/kernels/kernels.h"

/* Fills the table with kernels that do nothing. Local. */
void measure_open(struct kernels *kernels);

#endif
