#include "stages/model/kernels/processor.h"

#include <cpuid.h>

enum { FEATURES_LEAF = 7, FEATURES_FP16 = 1 << 23 };

enum processor_level processor_level(void) {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512 && __builtin_cpu_supports("avx512bf16")) return PROCESSOR_AVX512BF16;
  if (avx512) return PROCESSOR_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return PROCESSOR_AVX2;
  return PROCESSOR_PLAIN;
}

/* Sapphire Rapids brought vectors of half precision. */
static bool is_intel_with_tiles(void) {
  unsigned a, b, c, d = 0;
  return __builtin_cpu_is("intel") && __get_cpuid_count(FEATURES_LEAF, 0, &a, &b, &c, &d) &&
         (d & FEATURES_FP16);
}

bool processor_has_fast_pairs(void) {
  return processor_level() == PROCESSOR_AVX512BF16 && !is_intel_with_tiles();
}
