/* The tape: networks are written forward only, by calling layers; each layer leaves a record, and
 * the backward pass is the records in reverse.
 *
 * Rules for layers (stages/model/layers):
 *   - `name_forward(tape, inputs..., parameters..., options...)` takes its output from tape_value,
 *     computes it through tape->kernels, leaves a record, and returns the output;
 *   - its backward adds into the gradients of inputs (tape_gradient) and of parameters
 *     (param->gradient), again only through tape->kernels: on a measuring tape the kernels do
 *     nothing and pointers are NULL, so it takes exactly the memory of a real one;
 *   - it never allocates but from the tape, and communicates only where its header says so;
 *   - shapes that do not fit are faults of the program (assert); a failure of communication is left
 *     in tape->status, after which layers go on harmlessly and tape_backward returns it.
 */
#ifndef STAGES_MODEL_TAPE_TAPE_H
#define STAGES_MODEL_TAPE_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "stages/model/kernels/kernels.h"
#include "stages/model/tape/param.h"
#include "stages/model/tape/value.h"

enum { TAPE_RECORD_PARAMS = 4 };

struct tape;
struct record;

/* One per layer: its name and its derivatives. */
struct record_kind {
  const char *name;
  void (*backward)(struct tape *tape, const struct record *record);
  /* Forward derivative: opens and sets the tangents of the outputs where one of the inputs has one
   * (tangent.h); NULL where no objective needs it. */
  void (*jvp)(struct tape *tape, const struct record *record);
};

/* The head of every layer's record. */
struct record {
  const struct record_kind *kind;
  struct record *previous;
  struct param *params[TAPE_RECORD_PARAMS]; /* used by the layer; unused entries NULL */
};

/* Called during backward: before the first layer adds to a parameter's gradient, or when nothing
 * more will be added to it. */
typedef void tape_ready(void *context, struct param *param);

/* What the owner of a tape does beside the computation. */
struct tape_helper {
  void *context; /* borrowed */
  /* Brings the weights of a layer before its forward or backward pass, and takes them away after
   * it; both NULL where all weights stay. Every rank uses the same layers in the same order. */
  enum status (*enter)(void *context, const struct param_layer *layer, bool backward);
  void (*leave)(void *context, const struct param_layer *layer);
  /* Called between the operations of a pass: helps on what is on its way. Local. */
  enum status (*poll)(void *context);
};

struct tape {
  const struct kernels *kernels; /* borrowed */
  struct arena *arena;           /* borrowed: data of values, gradients, saved arrays */
  struct arena *records;         /* borrowed: structs of values and records; always real */
  struct record *last;
  bool recording;       /* off: values are computed and nothing is recorded */
  bool training;        /* on: dropout drops */
  bool counting;        /* forward pass of a checkpointed region: uses of parameters count */
  bool replaying;       /* backward pass of a checkpointed region: uses were counted before */
  bool moving;          /* forward derivatives are taken as well (tangent.h) */
  struct record *moved; /* the last record whose forward derivative ran */
  const struct tape_helper *helper; /* borrowed; set by the owner, or NULL */
  tape_ready *open; /* set by the owner, or NULL: called with the context of tape_backward for every
                       parameter of a layer before the layer's backward runs */
  tape_ready *ready;
  void *ready_context;
  enum status status;
};

/* Starts an empty tape; both arenas are used from their present marks on. A measuring `arena` goes
 * with the kernels "measure". Local. */
void tape_init(struct tape *tape, const struct kernels *kernels, struct arena *arena,
               struct arena *records);

/* A new contiguous value, contents undefined. It needs a gradient when the tape is recording.
 * Local. */
struct value *tape_value(struct tape *tape, int64_t rows, int64_t cols);

/* A constant: as tape_value without a gradient. tape_input copies `source` [rows, cols] (F32) into
 * one, converting to the element type; tape_output copies a contiguous value out as F32. Local. */
struct value *tape_constant(struct tape *tape, int64_t rows, int64_t cols);
struct value *tape_input(struct tape *tape, const float *source, int64_t rows, int64_t cols);
void tape_output(struct tape *tape, float *target, const struct value *value);

/* The same data without a gradient (stop-gradient). Local. */
struct value *tape_detach(struct tape *tape, const struct value *value);

/* Columns [first, first + cols) of a value as a view: same data, same gradient. Local. */
struct value *tape_columns(struct tape *tape, struct value *value, int64_t first, int64_t cols);

/* Memory for a layer's saved arrays, valid until the backward pass. NULL on a measuring tape.
 * Local. */
void *tape_save(struct tape *tape, size_t bytes);

/* Leaves a record of `bytes` bytes beginning with a struct record (the caller fills the rest); NULL
 * when not recording. Up to TAPE_RECORD_PARAMS parameters; NULL entries are allowed. Local. */
void *tape_record(struct tape *tape, const struct record_kind *kind, size_t bytes,
                  struct param *const *params, int count);

/* The gradient of `value` for adding to; only for values with needs_gradient (assert). *add says
 * whether it already holds something (add to it) or not (overwrite it). The value counts as reached
 * afterwards. A layer's backward has nothing to do when its output was not `reached`; the gradient
 * of the output is output->gradient. Local. */
void *tape_gradient(struct tape *tape, struct value *value, bool *add);

/* Runs all records in reverse; calls `ready` (may be NULL) for each parameter whose gradient is
 * complete. The tape is empty afterwards; arenas are reset by their owner. Local, but for layers
 * that say otherwise. Returns tape->status. */
enum status tape_backward(struct tape *tape, tape_ready *ready, void *context);

/* Switches recording off and back on (teachers, first passes of self-conditioning). Local. */
bool tape_pause(struct tape *tape);
void tape_resume(struct tape *tape, bool was_recording);

/* Whether weights are fetched layer by layer: every rank must then run the same layers, whatever
 * its rows. Local. */
bool tape_fetches(const struct tape *tape);

/* Part of a network that is computed again in the backward pass instead of being kept. */
typedef struct value *tape_region(struct tape *tape, const void *arguments, struct value *input);

/* Runs `region` keeping only its output, which has the shape of `input`; the backward pass runs it
 * again. `arguments` (copied, `bytes` of it) holds whatever else the region reads; values among it
 * that need a gradient are listed in `others`. Random draws repeat, since they are functions of
 * their keys. Local. */
struct value *tape_checkpoint(struct tape *tape, tape_region *region, const void *arguments,
                              size_t bytes, struct value *input, struct value *const *others,
                              int other_count);

/* One of the layers that a network repeats. */
struct tape_layer {
  tape_region *region; /* as for tape_checkpoint, with `arguments`, `bytes` and `others` */
  const void *arguments;
  size_t bytes;
  struct value *const *others;
  int other_count;
  bool recompute;                    /* run it through tape_checkpoint, even when recording */
  const struct param_layer *weights; /* of its parameters */
};

/* Runs a layer, its weights being fetched before and let go after both of its passes. Collective
 * over the world where weights are fetched, else local. */
struct value *tape_layer(struct tape *tape, const struct tape_layer *layer, struct value *input);

#endif
