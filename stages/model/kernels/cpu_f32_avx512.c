#include "stages/model/kernels/cpu_simd.h"
#include "stages/model/kernels/scratch.h"
#include "stages/model/kernels/simd.h"

#define ELEMENT float
#define LOAD simd_load
#define LOAD_SOME simd_load_some
#define STORE simd_store
#define STORE_SOME simd_store_some
#define WORD_GROUP 1
#define CPU_SIMD_OPEN cpu_f32_avx512

#include "stages/model/kernels/cpu_simd.inc"
