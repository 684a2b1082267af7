/* Vectors of the instruction set that this file is named for. */
#define SUPPORTED __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")

#include "tests/unit/stages/model/simd.inc"
