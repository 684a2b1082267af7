#include "stages/model/layers/modulate.h"

#include <assert.h>

#include "stages/model/tape/array.h"
#include "stages/model/tape/tangent.h"

struct modulate_record {
  struct record record;
  struct value *x, *shift, *scale, *y;
  int64_t positions;
};

static void *wanted(struct tape *tape, struct value *value, bool *add) {
  *add = false;
  return value->needs_gradient ? tape_gradient(tape, value, add) : NULL;
}

static void modulate_backward(struct tape *tape, const struct record *record) {
  const struct modulate_record *kept = (const struct modulate_record *)record;
  const struct value *x = kept->x;
  if (!kept->y->reached) return;
  bool add, add_shift, add_scale;
  void *dx = wanted(tape, kept->x, &add), *dshift = wanted(tape, kept->shift, &add_shift);
  void *dscale = wanted(tape, kept->scale, &add_scale);
  tape->kernels->modulate_backward(dx, dshift, dscale, kept->y->gradient, x->data,
                                   kept->scale->data, x->rows, x->cols, kept->positions,
                                   kept->scale->stride, add, add_shift, add_scale);
}

/* tx (1 + scale) + tshift + tscale x. */
static void modulate_jvp(struct tape *tape, const struct record *record) {
  const struct modulate_record *kept = (const struct modulate_record *)record;
  const struct value *x = kept->x, *scale = kept->scale;
  if (!tangent_moves(x) && !tangent_moves(kept->shift) && !tangent_moves(scale)) return;
  void *ty = tangent_open(tape, kept->y);
  tape->kernels->modulate_forward(ty, tangent_or_zeros(tape, x),
                                  tangent_or_zeros(tape, kept->shift), scale->data, x->rows,
                                  x->cols, kept->positions, scale->stride);
  if (tangent_moves(scale))
    tape->kernels->gate_forward(ty, ty, x->data, tangent_of(tape, scale), x->rows, x->cols,
                                kept->positions, scale->stride);
}

static const struct record_kind modulate_kind = {"modulate", modulate_backward, modulate_jvp};

static void check_condition(const struct value *x, const struct value *condition,
                            int64_t positions) {
  assert(array_is_contiguous(x) && condition->cols == x->cols);
  assert(positions > 0 && condition->rows * positions == x->rows);
  (void)x, (void)condition, (void)positions;
}

struct value *modulate_forward(struct tape *tape, struct value *x, struct value *shift,
                               struct value *scale, int64_t positions) {
  check_condition(x, shift, positions);
  check_condition(x, scale, positions);
  assert(shift->stride == scale->stride);
  struct value *y = tape_value(tape, x->rows, x->cols);
  tape->kernels->modulate_forward(y->data, x->data, shift->data, scale->data, x->rows, x->cols,
                                  positions, scale->stride);
  struct modulate_record *kept = tape_record(tape, &modulate_kind, sizeof(*kept), NULL, 0);
  if (!kept) return y;
  kept->x = x;
  kept->shift = shift;
  kept->scale = scale;
  kept->y = y;
  kept->positions = positions;
  return y;
}

struct gate_record {
  struct record record;
  struct value *x, *branch, *gate, *y;
  int64_t positions;
};

static void gate_backward(struct tape *tape, const struct record *record) {
  const struct gate_record *kept = (const struct gate_record *)record;
  const struct value *y = kept->y, *branch = kept->branch, *gate = kept->gate;
  if (!y->reached) return;
  array_add_gradient(tape, kept->x, y->gradient, y->stride);
  bool add_branch, add_gate;
  void *dbranch = wanted(tape, kept->branch, &add_branch);
  void *dgate = wanted(tape, kept->gate, &add_gate);
  tape->kernels->gate_backward(dbranch, dgate, y->gradient, branch->data, gate->data, y->rows,
                               y->cols, kept->positions, gate->stride, add_branch, add_gate);
}

/* tx + gate tbranch + tgate branch. */
static void gate_jvp(struct tape *tape, const struct record *record) {
  const struct gate_record *kept = (const struct gate_record *)record;
  const struct value *x = kept->x, *branch = kept->branch, *gate = kept->gate;
  if (!tangent_moves(x) && !tangent_moves(branch) && !tangent_moves(gate)) return;
  void *ty = tangent_open(tape, kept->y);
  tape->kernels->gate_forward(ty, tangent_or_zeros(tape, x), tangent_or_zeros(tape, branch),
                              gate->data, x->rows, x->cols, kept->positions, gate->stride);
  if (tangent_moves(gate))
    tape->kernels->gate_forward(ty, ty, branch->data, tangent_of(tape, gate), x->rows, x->cols,
                                kept->positions, gate->stride);
}

static const struct record_kind gate_kind = {"gate", gate_backward, gate_jvp};

struct value *modulate_gate(struct tape *tape, struct value *x, struct value *branch,
                            struct value *gate, int64_t positions) {
  check_condition(x, gate, positions);
  assert(array_is_contiguous(branch) && branch->rows == x->rows && branch->cols == x->cols);
  struct value *y = tape_value(tape, x->rows, x->cols);
  tape->kernels->gate_forward(y->data, x->data, branch->data, gate->data, x->rows, x->cols,
                              positions, gate->stride);
  struct gate_record *kept = tape_record(tape, &gate_kind, sizeof(*kept), NULL, 0);
  if (!kept) return y;
  kept->x = x;
  kept->branch = branch;
  kept->gate = gate;
  kept->y = y;
  kept->positions = positions;
  return y;
}
