/* Element types of arrays in memory and in files (names of the safetensors format). */
#ifndef PIPELINE_BASE_DTYPE_H
#define PIPELINE_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum dtype {
#define DTYPE(name, bytes) DTYPE_##name,
#include "pipeline/base/dtype.def"
#undef DTYPE
  DTYPE_COUNT
};

/* Bytes of one element. Local. */
size_t dtype_bytes(enum dtype dtype);

/* The name as written in safetensors headers, such as "BF16". Borrowed. Local. */
const char *dtype_name(enum dtype dtype);

/* Finds the type called `name`; false when there is none. Local. */
bool dtype_find(enum dtype *dtype, const char *name);

#endif
