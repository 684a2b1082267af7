/* The optimizer's state and updates, held by the owner of each tensor (sharding/zero.h).
 *
 * Rule for each tensor: with `optimizer: adamw` all take Adam; with `optimizer: muon` matrices
 * (PARAM_MATRIX, cut over a vocabulary group or not) take Muon, and tables, vectors and tokens take
 * Adam in its Nesterov form, at the same learning rate. Weight decay shrinks matrices and tables.
 * param->rate is a factor of Adam's rate, not of what decay takes in a step.
 *
 * A step that is skipped changes nothing here: `updates` counts the updates made and is the k of
 * the bias corrections; `averaged` counts the updates that entered the average, whose decay is the
 * lesser of the option `ema` and (1 + averaged) / (10 + averaged), so that short trainings forget
 * their first weights.
 */
#ifndef STAGES_TRAIN_OPTIMIZER_H
#define STAGES_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/config/options.h"
#include "sharding/gradients.h"
#include "sharding/vocab.h"
#include "sharding/zero.h"
#include "stages/model/kernels/kernels.h"
#include "stages/model/tape/param.h"
#include "stages/train/muon.h"

struct optimizer_tensor {
  struct param *param; /* borrowed */
  bool owned;          /* by this rank, with the arrays below; NULL elsewhere */
  bool muon;
  bool together;  /* Muon's products are made by all ranks (muon.h) */
  int owner;      /* rank in the axis of the tensor */
  int16_t *low;   /* of the masters (master.h); NULL: the weights are the masters */
  void *first;    /* first moment, or Muon's momentum (moments.h) */
  void *second;   /* second moment; NULL for Muon */
  float *average; /* NULL: none is kept */
};

struct optimizer {
  const struct options *options; /* borrowed */
  struct vocab *vocab;           /* borrowed; of cut matrices */
  struct dense_grid *grid;       /* borrowed; of matrices that are worked on together, or NULL */
  struct kernels products;       /* F32, for Muon */
  struct optimizer_tensor *tensors;
  int64_t count;
  int64_t updates, averaged;
  struct arena scratch; /* owned; for Muon */
};

struct optimizer_setup {
  const struct options *options;
  struct vocab *vocab;
  const struct zero *zero;     /* tensors in the order of `params` */
  const bool *together;        /* which of them all ranks work on; NULL: none */
  struct dense_grid *grid;     /* for these; or NULL */
  struct param *const *params; /* what is trained */
  int64_t count;
  enum dtype element;  /* of the weights: F32 or BF16 */
  const char *kernels; /* table of kernels for Muon's products */
};

/* Whether a parameter takes Muon under these options, and the bytes of state of each element.
 * Local.
 */
bool optimizer_takes_muon(const struct options *options, const struct param *param);
int64_t optimizer_state_bytes(const struct options *options, const struct param *param,
                              enum dtype element);

/* Takes the state of owned tensors from `arena` (which may be measuring), zeroed; masters and
 * averages must then be set by optimizer_start or from a checkpoint. Local. */
enum status optimizer_init(struct optimizer *optimizer, const struct optimizer_setup *setup,
                           struct arena *arena);
void optimizer_free(struct optimizer *optimizer);

/* Sets masters and averages of owned tensors to the present weights. Local. */
void optimizer_start(struct optimizer *optimizer);

/* The numbers of one update. */
struct optimizer_update {
  double rate;           /* learning rate */
  double gradient_scale; /* of clipping */
};

/* Begins the next update: the counts go up by one. Local. */
void optimizer_begin(struct optimizer *optimizer);

/* Updates one owned tensor from its summed gradient, and its average; *finite says whether all its
 * weights are finite numbers afterwards. Local; for a matrix that takes Muon and is cut, collective
 * over the vocabulary group, whose ranks own its rows together; for one that all ranks work on,
 * collective over world, the others being in optimizer_help. */
enum status optimizer_apply(struct optimizer *optimizer, int64_t tensor,
                            const struct gradients_sum *gradient,
                            const struct optimizer_update *update, bool *finite);

/* Helps with a tensor that another rank owns and all ranks work on, while its owner is in
 * optimizer_apply. Collective over world. */
enum status optimizer_help(struct optimizer *optimizer, int64_t tensor);

/* A tensor as Muon sees it. Local. */
struct muon_matrix optimizer_matrix(struct optimizer *optimizer,
                                    const struct optimizer_tensor *tensor);

/* The F32 masters of [first, first + count) of an owned tensor. Local. */
void optimizer_masters(const struct optimizer *optimizer, int64_t tensor, float *values,
                       int64_t first, int64_t count);

#endif
