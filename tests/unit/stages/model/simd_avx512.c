/* Vectors of the instruction set that this file is named for. */
#define SUPPORTED __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")

#include "tests/unit/stages/model/simd.inc"
