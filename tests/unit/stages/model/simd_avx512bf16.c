/* Vectors of the instruction set that this file is named for. */
#define SUPPORTED __builtin_cpu_supports("avx512bf16")

#include "tests/unit/stages/model/simd.inc"
