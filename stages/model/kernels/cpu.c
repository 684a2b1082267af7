#include "stages/model/kernels/cpu.h"

#include "stages/model/kernels/cpu_linear.h"
#include "stages/model/kernels/cpu_simd.h"

/* The best instruction set of this processor that there are kernels for. */
enum level { LEVEL_PLAIN, LEVEL_AVX2, LEVEL_AVX512, LEVEL_AVX512BF16 };

static enum level find_level(void) {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512 && __builtin_cpu_supports("avx512bf16")) return LEVEL_AVX512BF16;
  if (avx512) return LEVEL_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return LEVEL_AVX2;
  return LEVEL_PLAIN;
}

static void open_f32(struct kernels *kernels, enum level level) {
  cpu_linear_f32(kernels);
  if (level >= LEVEL_AVX512)
    cpu_f32_avx512(kernels);
  else if (level == LEVEL_AVX2)
    cpu_f32_avx2(kernels);
}

static void open_bf16(struct kernels *kernels, enum level level) {
  cpu_linear_bf16(kernels);
  if (level == LEVEL_AVX512BF16)
    cpu_bf16_avx512bf16(kernels);
  else if (level == LEVEL_AVX512)
    cpu_bf16_avx512(kernels);
  else if (level == LEVEL_AVX2)
    cpu_bf16_avx2(kernels);
}

enum status cpu_open(struct kernels *kernels) {
  if (kernels->element == DTYPE_BF16)
    open_bf16(kernels, find_level());
  else
    open_f32(kernels, find_level());
  return STATUS_OK;
}
