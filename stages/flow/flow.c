#include "stages/flow/flow.h"

#include <stddef.h>
#include <string.h>

static const struct flow_kind *const kinds[] = {
#define FLOW(name) &flow_##name,
#include "stages/flow/flows.def"
#undef FLOW
};

const struct flow_kind *flow_find(const char *name) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
  return NULL;
}
