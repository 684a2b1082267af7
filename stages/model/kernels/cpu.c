#include "stages/model/kernels/cpu.h"

enum status cpu_open(struct kernels *kernels) {
  (void)kernels;
  return STATUS_OK;
}
