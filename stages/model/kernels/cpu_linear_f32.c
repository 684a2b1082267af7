#include "stages/model/kernels/cpu_linear.h"
#include "stages/model/kernels/product.h"

#define INPUT DTYPE_F32
#define CPU_LINEAR_OPEN cpu_linear_f32

#include "stages/model/kernels/cpu_linear.inc"
