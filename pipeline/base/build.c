#include "pipeline/base/build.h"

const char *build_id(void) {
  return BUILD_ID;
}
