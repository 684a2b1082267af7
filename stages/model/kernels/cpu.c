#include "stages/model/kernels/cpu.h"

#include "stages/model/kernels/cpu_linear.h"
#include "stages/model/kernels/cpu_simd.h"
#include "stages/model/kernels/processor.h"
#include "stages/model/kernels/product.h"

static void open_f32(struct kernels *kernels, enum processor_level level) {
  cpu_linear_f32(kernels);
  if (level >= PROCESSOR_AVX512)
    cpu_f32_avx512(kernels);
  else if (level == PROCESSOR_AVX2)
    cpu_f32_avx2(kernels);
}

static void open_bf16(struct kernels *kernels, enum processor_level level) {
  cpu_linear_bf16(kernels);
  if (product_uses_tiles())
    cpu_bf16_amx(kernels);
  else if (processor_has_fast_pairs())
    cpu_bf16_avx512bf16(kernels);
  else if (level >= PROCESSOR_AVX512)
    cpu_bf16_avx512(kernels);
  else if (level == PROCESSOR_AVX2)
    cpu_bf16_avx2(kernels);
}

enum status cpu_open(struct kernels *kernels) {
  if (kernels->element == DTYPE_BF16)
    open_bf16(kernels, processor_level());
  else
    open_f32(kernels, processor_level());
  return STATUS_OK;
}
