#include "stages/model/kernels/cpu_simd.h"
#include "stages/model/kernels/scratch.h"
#include "stages/model/kernels/simd.h"
#include "stages/model/kernels/tiles.h"

#define ELEMENT bf16
#define LOAD simd_load_bf16
#define LOAD_SOME simd_load_bf16_some
#define STORE simd_store_bf16
#define STORE_SOME simd_store_bf16_some
#define WORD_GROUP 2
#define CPU_SIMD_OPEN cpu_bf16_amx

#include "stages/model/kernels/cpu_simd.inc"
