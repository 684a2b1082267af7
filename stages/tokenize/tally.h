/* Counters of a tokenize node. */
#ifndef STAGES_TOKENIZE_TALLY_H
#define STAGES_TOKENIZE_TALLY_H

#include <stdint.h>

struct tally {
#define TALLY(name) int64_t name;
#include "stages/tokenize/tally.def"
#undef TALLY
};

enum { TALLY_COUNT = sizeof(struct tally) / sizeof(int64_t) };

#endif
