#include "stages/model/kernels/measure.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define KERNEL(name, parameters)                                                                   \
  static void measure_##name parameters {                                                          \
  }
#include "stages/model/kernels/kernels.def"
#undef KERNEL

void measure_open(struct kernels *kernels) {
#define KERNEL(name, parameters) kernels->name = measure_##name;
#include "stages/model/kernels/kernels.def"
#undef KERNEL
}
