#include "stages/model/tape/tangent.h"

#include <assert.h>

#include "stages/model/tape/array.h"

/* Uses of parameters are not counted: no backward pass follows. */
void tangent_begin(struct tape *tape, struct tangent_span *span) {
  assert(!tape->moving);
  *span = (struct tangent_span){tape->last, tape->recording, tape->replaying};
  tape->last = tape->moved = NULL;
  tape->moving = tape->recording = tape->replaying = true;
}

void tangent_end(struct tape *tape, const struct tangent_span *span) {
  tangent_catch_up(tape);
  tape->moving = false;
  tape->moved = NULL;
  tape->last = span->last;
  tape->recording = span->recording;
  tape->replaying = span->replaying;
}

static int64_t waiting(const struct tape *tape) {
  int64_t count = 0;
  for (const struct record *r = tape->last; r != tape->moved; r = r->previous) count++;
  return count;
}

void tangent_catch_up(struct tape *tape) {
  const int64_t count = waiting(tape);
  const struct record **order = arena_take(tape->records, (size_t)(count + 1) * sizeof *order);
  const struct record *record = tape->last;
  for (int64_t i = count - 1; i >= 0; i--, record = record->previous) order[i] = record;
  for (int64_t i = 0; i < count; i++) {
    assert(order[i]->kind->jvp);
    order[i]->kind->jvp(tape, order[i]);
  }
  tape->moved = tape->last;
}

void *tangent_open(struct tape *tape, struct value *value) {
  assert(tape->moving && !value->parent && !value->moves);
  value->moves = true;
  value->tangent = array_elements(tape, value->rows * value->stride);
  return value->tangent;
}

bool tangent_moves(const struct value *value) {
  return value->parent ? tangent_moves(value->parent) : value->moves;
}

void *tangent_of(const struct tape *tape, const struct value *value) {
  if (!value->parent) return value->tangent;
  return array_at(tape, tangent_of(tape, value->parent), value->column);
}

void *tangent_or_zeros(struct tape *tape, const struct value *value) {
  if (tangent_moves(value)) return tangent_of(tape, value);
  void *zeros = array_elements(tape, value->rows * value->stride);
  tape->kernels->fill_zero(zeros, value->rows * value->stride);
  return zeros;
}
