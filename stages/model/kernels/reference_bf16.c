#include "pipeline/base/bf16.h"
#include "stages/model/kernels/reference.h"

#define ELEMENT bf16
#define SUM float
#define LOAD(x) bf16_to_float(x)
#define STORE(x) bf16_from_float(x)
#define MATH(name) name##f
#define REFERENCE_OPEN reference_bf16

#include "stages/model/kernels/reference.inc"
