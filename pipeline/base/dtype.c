#include "pipeline/base/dtype.h"

#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
} dtypes[DTYPE_COUNT] = {
#define DTYPE(name, bytes) {#name, bytes},
#include "pipeline/base/dtype.def"
#undef DTYPE
};

size_t dtype_bytes(enum dtype dtype) {
  return dtypes[dtype].bytes;
}

const char *dtype_name(enum dtype dtype) {
  return dtypes[dtype].name;
}

bool dtype_find(enum dtype *dtype, const char *name) {
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (strcmp(dtypes[i].name, name) != 0) continue;
    *dtype = (enum dtype)i;
    return true;
  }
  return false;
}
