/* One training node: everything that pretrain, autoencode and distill share.
 *
 * Steps are counted from 0. A step takes `batch` rows in `micro_shards` micro-shards; each rank
 * works on its own one after the other. Losses, gradients and weights follow fixed trees over
 * micro-shards and vocabulary slices, so that they have the same bits for every admissible number
 * of ranks (sharding/grid.h), and a resumed run goes on as if nothing had happened.
 */
#ifndef STAGES_TRAIN_TRAIN_H
#define STAGES_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "monitoring/health.h"
#include "monitoring/meter.h"
#include "monitoring/metric_file.h"
#include "monitoring/progress.h"
#include "monitoring/timer.h"
#include "monitoring/watchdog.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/hash.h"
#include "sharding/dense_grid.h"
#include "sharding/fetch.h"
#include "sharding/gradients.h"
#include "sharding/grid.h"
#include "sharding/vocab.h"
#include "sharding/zero.h"
#include "stages/flow/flow.h"
#include "stages/flow/model.h"
#include "stages/model/tape/workspace.h"
#include "stages/stage.h"
#include "stages/train/optimizer.h"
#include "stages/train/train_clock.h"
#include "stages/train/train_data.h"

enum { TRAIN_RUN_ID_BYTES = 40, TRAIN_SLOWEST_BYTES = 160 };

/* What a checkpoint keeps beside arrays. */
struct train_counts {
  int64_t step;           /* optimizer steps done, skipped ones included */
  int64_t tokens;         /* valid tokens trained on */
  int64_t skipped;        /* steps that changed nothing, in all */
  int64_t skipped_in_row; /* ... and since the last that did */
};

/* Which checkpoint has the least loss on held-out rows (keep_best). */
struct train_best {
  int64_t step; /* -1: none yet */
  double loss;
  int64_t validated; /* step of the last validation of this start; -1: none */
  double validated_loss;
};

struct train {
  struct stage *stage;             /* borrowed */
  const struct options *options;   /* of the node; borrowed */
  const struct recipe_node *shape; /* the node whose options shape the network; borrowed */
  char tokens_folder[STAGE_PATH_BYTES];
  char embeddings_folder[STAGE_PATH_BYTES]; /* "" without */
  const struct recipe_node *embed;          /* the node there; borrowed; NULL without */
  char base_folder[STAGE_PATH_BYTES];       /* of what is distilled; "" otherwise */
  char tokenizer_hash[HASH_HEX_BYTES];
  char base_hash[HASH_HEX_BYTES];   /* of the weights that are distilled; "" otherwise */
  char fingerprint[HASH_HEX_BYTES]; /* of the data and its order */
  char config_hash[HASH_HEX_BYTES];
  char run_id[TRAIN_RUN_ID_BYTES];
  struct model_facts facts;

  struct grid grid;
  struct kernels kernels;
  struct vocab vocab;
  struct params params, teacher;
  struct flow flow;
  struct train_data data, held_out;
  struct latents online; /* with `embed: online`; else zero */

  struct param **trained; /* [trained_count] what has a gradient, derived parameters included */
  int64_t trained_count;
  struct zero zero;
  struct dense_grid polar_grid; /* of matrices whose products all ranks make together */
  bool *together;               /* [trained_count] these */
  struct gradients *gradients;
  struct fetch fetch; /* of layers whose weights are kept by their owners */
  int64_t layers;     /* numbered so far: those of the network, then the teacher's */
  int *teacher_owner; /* [teacher.count] rank that keeps a fetched parameter of the teacher */
  struct tape_helper helper;
  struct param_sink sink; /* of sliced parameters: into `gradients` */
  float **derived;  /* [trained_count] of derived parameters: the summed gradient; else NULL */
  bool *opened;     /* [trained_count] asked for in this micro step */
  bool *complete;   /* [trained_count] gradients of this micro step that nothing is added to */
  int64_t released; /* ... of which these many, from the last declared on, were handed over */
  enum status exchange_status; /* of handing over during the backward pass */
  double *squares;             /* [trained_count] of the summed gradients */
  double *scalars;             /* [micro steps][FLOW_PARTS] */
  struct optimizer optimizer;
  struct arena declarations, weights, fetched, sums, state; /* owned */
  struct workspace workspace;                               /* activations */
  bool weights_not_finite; /* an update of this rank left such weights */

  struct train_counts counts;
  struct train_best best;
  struct health health;
  struct timer timer; /* of this step */
  struct watchdog watchdog;
  char hang_folder[STAGE_PATH_BYTES]; /* of the watchdog's answers */
  double spent[TIMER_PHASES];         /* seconds of this start, by phase */
  struct train_clock clock;           /* rank 0 */
  struct progress progress;
  double recent[TIMER_PHASES]; /* ... since ranks were last compared */
  int64_t recent_steps;
  char slowest[TRAIN_SLOWEST_BYTES]; /* ... and which stood out then; "" for none; rank 0 */
  double exposed;                    /* seconds of exchanges that no work hid, since the start */
  struct meter speed;                /* tokens per second since the last line */
  struct metric_file metrics;
};

/* Opens inputs, declares the network, takes memory and sets the first weights. Collective over
 * stage->comm; all ranks return the same status. MISMATCH for inputs that do not fit one another.
 * train_close afterwards, also on failure. */
enum status train_open(struct train *train, struct stage *stage);
void train_close(struct train *train);

/* Trains to the end of the recipe's steps. Collective. STOPPED after saving when a stop was
 * requested; NUMERIC when the budget of skipped steps is spent; WRITE when checkpoints could not be
 * written again and again. */
enum status train_loop(struct train *train);

#endif
