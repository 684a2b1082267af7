#include "stages/model/kernels/cpu.h"

#include "stages/model/kernels/cpu_linear.h"

enum status cpu_open(struct kernels *kernels) {
  if (kernels->element == DTYPE_BF16)
    cpu_linear_bf16(kernels);
  else
    cpu_linear_f32(kernels);
  return STATUS_OK;
}
