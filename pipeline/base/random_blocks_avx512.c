#define KERNEL random_kernel_avx512
#include "pipeline/base/random_blocks.inc"
