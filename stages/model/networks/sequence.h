/* How the rows of a value are sequences: what position each row has, and which keys it sees. */
#ifndef STAGES_MODEL_NETWORKS_SEQUENCE_H
#define STAGES_MODEL_NETWORKS_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/tape/tape.h"

struct sequence {
  int64_t batch, positions;             /* rows = batch * positions, batch outermost */
  const int32_t *places;                /* [rows] for rotary embedding; -1: not rotated */
  const struct attention_range *ranges; /* visible keys; NULL: all */
  bool shared_ranges;                   /* ranges are [positions] for the whole batch */
};

/* Sequences of `control` unrotated rows and then places 0, 1, ...: `positions` rows altogether;
 * full attention. The arrays live on the tape, as long as its values. Local. */
struct sequence sequence_full(struct tape *tape, int64_t batch, int64_t control, int64_t positions);

/* As sequence_full without control rows; a row sees itself and those before it. Local. */
struct sequence sequence_causal(struct tape *tape, int64_t batch, int64_t positions);

#endif
