/* Tangents: the forward derivative of what layers compute, along a direction of their inputs.
 *
 * Between tangent_begin and tangent_end a tape is moving: layers leave records as for a backward
 * pass, and the derivative of each (record_kind.jvp) runs after it, so that a value's tangent lies
 * beside its data. Inputs that move are given a tangent after tangent_begin; values that depend on
 * none of them have none, which stands for zero. Parameters do not move. A checkpointed region
 * keeps nothing but its output and that output's tangent, so that a network takes the memory of one
 * region, not of all. Records are gone afterwards: there is no backward pass through a tangent.
 */
#ifndef STAGES_MODEL_TAPE_TANGENT_H
#define STAGES_MODEL_TAPE_TANGENT_H

#include <stdbool.h>

#include "stages/model/tape/tape.h"

/* What tangent_end puts back. */
struct tangent_span {
  struct record *last;
  bool recording, replaying;
};

/* Spans do not nest. Local. */
void tangent_begin(struct tape *tape, struct tangent_span *span);
void tangent_end(struct tape *tape, const struct tangent_span *span);

/* Runs what is left to run, so that the tangents of all values made so far are there. Local. */
void tangent_catch_up(struct tape *tape);

/* Memory for the tangent of `value`, of its shape and stride, which the caller fills: that of a
 * layer's output, or of an input. Local. */
void *tangent_open(struct tape *tape, struct value *value);

/* Whether a value has a tangent, and where: views share that of the value they are cut from. NULL
 * where there is none, and on a measuring tape. Local. */
bool tangent_moves(const struct value *value);
void *tangent_of(const struct tape *tape, const struct value *value);

/* As tangent_of; zeros of the same shape and stride, memory of the tape, where there is none.
 * Local. */
void *tangent_or_zeros(struct tape *tape, const struct value *value);

#endif
