/* A value: one matrix of activations on a tape, and its gradient. */
#ifndef STAGES_MODEL_TAPE_VALUE_H
#define STAGES_MODEL_TAPE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* Rows are positions (batch x time, batch outermost), columns are channels. Elements have the type
 * `element` of the tape's kernels. Row i begins at element i * stride; a value made by a layer is
 * contiguous (stride == cols), a view of some columns of another value is not. */
struct value {
  void *data; /* NULL on a measuring tape */
  int64_t rows, cols, stride;
  bool needs_gradient;

  /* Owned by the tape: */
  bool reached;         /* backward: a gradient was asked for, so `gradient` is in use */
  bool has_views;       /* its gradient is zeroed first, since views add to parts of it */
  void *gradient;       /* same rows, cols and stride; NULL on a measuring tape */
  struct value *parent; /* a view: the value whose data and gradient it shares */
  int64_t column;       /* a view: its first column in the parent */
  bool moves;           /* has a tangent (tangent.h) */
  void *tangent;        /* same rows, cols and stride; NULL on a measuring tape */
};

#endif
