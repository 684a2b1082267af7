/* The kinds of stages, from kinds.def. */
#ifndef PIPELINE_CONFIG_KINDS_H
#define PIPELINE_CONFIG_KINDS_H

#include <stdbool.h>

enum kind {
#define KIND(NAME, name, program, needs, takes, rules, help) KIND_##NAME,
#include "pipeline/config/kinds.def"
#undef KIND
  KIND_COUNT
};

/* Sets of kinds, one bit each. */
enum {
#define KIND(NAME, name, program, needs, takes, rules, help) IN_##NAME = 1 << KIND_##NAME,
#include "pipeline/config/kinds.def"
#undef KIND
  IN_ALL = (1 << KIND_COUNT) - 1,
  IN_TRAINING = IN_AUTOENCODE | IN_PRETRAIN | IN_DISTILL,
  IN_MODEL = IN_EMBED | IN_TRAINING | IN_SAMPLE | IN_EVALUATE, /* kinds that run a network */
  IN_MPI = IN_ALL & ~(IN_SWEEP | IN_REPORT)
};

/* The word used in recipes, such as "tokenize". Borrowed. Local. */
const char *kind_name(enum kind kind);

/* One line on what the kind does. Borrowed. Local. */
const char *kind_help(enum kind kind);

/* Finds the kind called `name`; false when there is none. Local. */
bool kind_find(enum kind *kind, const char *name);

/* The kind whose name is nearest to `name`, or NULL. Borrowed. Local. */
const char *kind_nearest(const char *name);

/* Whether the kind runs as ranks of millrace-stage; else as one program without MPI. Local. */
bool kind_is_parallel(enum kind kind);

/* The kinds a node of this kind may name in `from:`, and those of which it must name at least one
 * (0 = none); masks of IN_... Local. */
unsigned kind_inputs(enum kind kind);
unsigned kind_needs(enum kind kind);

/* The edition of the rules by which the kind makes results from its options, from 1. Local. */
int kind_rules(enum kind kind);

#endif
