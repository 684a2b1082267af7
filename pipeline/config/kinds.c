#include "pipeline/config/kinds.h"

#include <string.h>

#include "pipeline/base/text.h"

enum program { SERIAL, MPI };

static const char *const names[KIND_COUNT] = {
#define KIND(NAME, name, program, needs, takes, rules, help) #name,
#include "pipeline/config/kinds.def"
#undef KIND
};

static const struct {
  enum program program;
  unsigned needs, takes;
  int rules;
  const char *help;
} kinds[KIND_COUNT] = {
#define KIND(NAME, name, program, needs, takes, rules, help)                                       \
  {program, (unsigned)(needs), (unsigned)(takes), rules, help},
#include "pipeline/config/kinds.def"
#undef KIND
};

const char *kind_name(enum kind kind) {
  return names[kind];
}

const char *kind_help(enum kind kind) {
  return kinds[kind].help;
}

bool kind_find(enum kind *kind, const char *name) {
  for (int i = 0; i < KIND_COUNT; i++) {
    if (strcmp(names[i], name) != 0) continue;
    *kind = (enum kind)i;
    return true;
  }
  return false;
}

const char *kind_nearest(const char *name) {
  return text_nearest(name, names, KIND_COUNT);
}

bool kind_is_parallel(enum kind kind) {
  return kinds[kind].program == MPI;
}

unsigned kind_inputs(enum kind kind) {
  return kinds[kind].needs | kinds[kind].takes;
}

unsigned kind_needs(enum kind kind) {
  return kinds[kind].needs;
}

int kind_rules(enum kind kind) {
  return kinds[kind].rules;
}
