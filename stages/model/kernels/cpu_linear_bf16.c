#include "stages/model/kernels/cpu_linear.h"
#include "stages/model/kernels/product.h"

#define INPUT DTYPE_BF16
#define CPU_LINEAR_OPEN cpu_linear_bf16

#include "stages/model/kernels/cpu_linear.inc"
