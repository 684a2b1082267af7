#define KERNEL random_kernel_plain
#include "pipeline/base/random_blocks.inc"

const struct random_kernel *random_kernel_pick(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return &random_kernel_avx512;
  if (__builtin_cpu_supports("avx2")) return &random_kernel_avx2;
  return &random_kernel_plain;
}
