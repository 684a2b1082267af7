/* Parameters: the trainable arrays of a network, declared once, in an order that is the network's.
 *
 * A network declares its parameters into a `struct params` (names, shapes, initial values), which
 * needs no memory for the arrays: counting the parameters of a 1.7B model is free. Then the set is
 * bound to memory and initialised. Initial values are functions of (seed, name, global element
 * index) alone, never of the layout.
 */
#ifndef STAGES_MODEL_TAPE_PARAM_H
#define STAGES_MODEL_TAPE_PARAM_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/dtype.h"

enum { PARAM_NAME_BYTES = 96, PARAM_DIMENSIONS = 3 };

enum param_init {
  PARAM_ZERO,
  PARAM_ONE,
  PARAM_NORMAL,         /* N(0, scale^2) */
  PARAM_UNIFORM,        /* U(-scale, scale) */
  PARAM_XAVIER_UNIFORM, /* U(-a, a), a = scale * sqrt(6 / (rows + cols)) */
  PARAM_FAN_IN_NORMAL,  /* N(0, scale^2 / cols) */
  PARAM_SPECTRAL        /* normal, with `scale` as the largest singular value; not of slices */
};

/* What the array is, which decides its type in memory and its optimizer. */
enum param_kind {
  PARAM_MATRIX, /* [out, in] of a linear map: element type; Muon takes these */
  PARAM_TABLE,  /* [vocabulary, channels]: element type; may be held in row slices */
  PARAM_VECTOR, /* gains, biases, scalars: sum type */
  PARAM_TOKENS  /* a few learned rows ([1, rows, cols] in checkpoints): element type; not Muon */
};

struct param;

/* Neighbouring parameters that a network uses together, one layer after the other. */
struct param_layer {
  int64_t first, end; /* in the items of their set */
  int64_t number;     /* given by whoever fetches layers (tape.h, tape_helper) */
};

/* Which ranks keep the array of a parameter. */
enum param_place {
  PARAM_EVERYWHERE,
  PARAM_HERE,     /* this rank alone */
  PARAM_ELSEWHERE /* another rank: `data` is NULL but while the parameter's layer is in use */
};

/* Takes the gradient of a sliced table in finished pieces, so that the whole of it need not exist
 * beside the sums (sharding/gradients.h, gradients_give). */
struct param_sink {
  void *context; /* borrowed */
  /* Rows [first, first + count), counted from row_begin, of the contribution of the tokens of
   * member `member` (sum type; NULL: zeros). Called instead of adding to param_member_gradient when
   * the parameter has one use; members in order, each row once for each. */
  void (*give)(void *context, struct param *param, int64_t member, int64_t first, int64_t count,
               const void *values);
  /* Adds to rows of the gradient after it was summed over the whole batch (flow_kind,
   * complete_gradients); NULL where that is param->gradient. */
  void (*add)(void *context, struct param *param, int64_t first, int64_t count,
              const float *values);
};

struct param {
  char name[PARAM_NAME_BYTES]; /* as in checkpoints: "blocks.0.attn.qkv.weight" */
  enum param_kind kind;
  int64_t rows, cols; /* global; a vector has rows == 1 unless sliced with a table */
  int dimensions;     /* of the array in checkpoints */
  int64_t shape[PARAM_DIMENSIONS];
  enum param_init init;
  double scale;
  double rate;  /* factor of the learning rate; 1 */
  bool frozen;  /* no gradient, no optimizer state */
  bool derived; /* computed from other parameters: it has a gradient, which every rank needs, but no
                   initial value, no optimizer state and no place in checkpoints or counts */

  struct param_layer *layer; /* NULL: of none */
  enum param_place place;
  int64_t row_begin, row_count; /* rows held here; all of them unless sliced */
  bool sliced;                  /* rows are cut over the vocabulary group: param_slice was called */
  void *data;                   /* [row_count, cols] in param_dtype() */
  void *gradient;               /* [row_count, cols] in the sum type, or NULL */
  void **member_gradients;      /* sliced, in training: where the gradient of the tokens of each
                                   member of the group is added; see param_member_gradient */
  const struct param_sink *sink; /* borrowed; NULL: gradients are added where the above say */
  int uses;                      /* recorded since the gradient was last complete */
  int pending;                   /* of these, those whose backward has not run yet */
};

struct params {
  struct arena *arena; /* borrowed: holds the declarations; a real arena */
  struct param **items;
  int64_t count;
  int64_t capacity;
  struct param_layer *layer; /* that is being declared, or NULL */
};

/* An empty set whose declarations live in `arena` (borrowed, real, outlives the set). Local. */
void params_init(struct params *params, struct arena *arena);

/* Declares a parameter; the returned struct is owned by the set and never moves. The caller may
 * change `kind`, `init`, `scale`, `rate`, `frozen`, `dimensions` and `shape` before binding. `name`
 * is a printf format; names are unique in the set (assert). Local. */
struct param *params_add_matrix(struct params *params, int64_t rows, int64_t cols,
                                enum param_init init, double scale, const char *name, ...)
    __attribute__((format(printf, 6, 7)));
struct param *params_add_table(struct params *params, int64_t rows, int64_t cols,
                               enum param_init init, double scale, const char *name, ...)
    __attribute__((format(printf, 6, 7)));
struct param *params_add_tokens(struct params *params, int64_t rows, int64_t cols,
                                enum param_init init, double scale, const char *name, ...)
    __attribute__((format(printf, 6, 7)));
struct param *params_add_vector(struct params *params, int64_t count, enum param_init init,
                                double scale, const char *name, ...)
    __attribute__((format(printf, 5, 6)));

/* What is declared between the two belongs to one layer, which params_begin_layer returns; the set
 * owns it. Local. */
struct param_layer *params_begin_layer(struct params *params);
void params_end_layer(struct params *params);

/* Restricts a table (or a [V, 1] column of vocabulary biases) to rows [begin, begin + count) on
 * this rank; also called when a group of one holds all rows. Local. */
void param_slice(struct param *param, int64_t begin, int64_t count);

/* Where a layer adds the gradient of a sliced parameter that comes from the tokens of member
 * `member` of the vocabulary group. Training keeps members apart, so that sums have the same bits
 * for every group size (sharding/gradients.h); elsewhere it is `gradient` for all. Local. */
static inline void *param_member_gradient(const struct param *param, int64_t member) {
  return param->member_gradients ? param->member_gradients[member] : param->gradient;
}

/* Whether layers give a parameter's gradient to its sink. Local. */
static inline bool param_gives(const struct param *param) {
  return param->sink && param->uses == 1;
}

/* The type of a parameter's array when activations have the type `element`: vectors have the sum
 * type (F64 for F64, else F32), everything else the element type. Gradients always have the sum
 * type. Local. */
enum dtype param_dtype(const struct param *param, enum dtype element);

/* Global number of elements of one parameter, and of all in the set. Local. */
int64_t param_count(const struct param *param);
int64_t params_count(const struct params *params);

/* Takes memory for the arrays that are not elsewhere, and for gradients when `with_gradients` (not
 * for frozen ones), from `arena`, which may be measuring. Gradients start at zero. Local. */
void params_bind(struct params *params, struct arena *arena, enum dtype element,
                 bool with_gradients);

/* Fills the arrays that are here with their initial values for `seed`. Local; the same values for
 * any slicing. */
void params_initialise(const struct params *params, enum dtype element, uint64_t seed);

/* Finds a parameter by name; NULL when there is none. Borrowed. Local. */
struct param *params_find(const struct params *params, const char *name);

/* Sets all gradients to zero. Local. */
void params_clear_gradients(const struct params *params, enum dtype element);

#endif
