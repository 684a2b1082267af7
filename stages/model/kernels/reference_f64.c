#include "stages/model/kernels/reference.h"

#define ELEMENT double
#define SUM double
#define LOAD(x) (x)
#define STORE(x) (x)
#define MATH(name) name
#define REFERENCE_OPEN reference_f64

#include "stages/model/kernels/reference.inc"
