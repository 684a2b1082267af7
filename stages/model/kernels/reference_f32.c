#include "stages/model/kernels/reference.h"

#define ELEMENT float
#define SUM float
#define LOAD(x) (x)
#define STORE(x) (x)
#define MATH(name) name##f
#define REFERENCE_OPEN reference_f32

#include "stages/model/kernels/reference.inc"
