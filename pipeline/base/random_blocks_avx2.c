#define KERNEL random_kernel_avx2
#include "pipeline/base/random_blocks.inc"
