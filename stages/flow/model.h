/* A finished model: what a training node left, loaded and ready to draw or to score texts.
 *
 * `weights/` of a finished training node holds one step in the format of checkpoints: "model.NAME"
 * for every parameter that is neither frozen nor derived, in the type it was trained in, and
 * "ema.NAME" in F32 when an average was kept. The step's state holds the facts below, so that a
 * reader needs neither the tokenizer nor the data.
 */
#ifndef STAGES_FLOW_MODEL_H
#define STAGES_FLOW_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/artefact/scalars.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/config/options.h"
#include "pipeline/config/recipe.h"
#include "sharding/vocab.h"
#include "stages/flow/flow.h"
#include "stages/model/kernels/kernels.h"
#include "stages/model/tape/param.h"

#define MODEL_FOLDER "weights" /* in the folder of the node */
#define MODEL_PREFIX "model."
#define MODEL_AVERAGE_PREFIX "ema."

/* Canonical slices of every vocabulary (sharding/vocab.h): the same in training and afterwards. */
enum { MODEL_VOCABULARY_SLICES = 16 };

struct model_request {
  const struct recipe *recipe;
  const struct recipe_node *node; /* the training node */
  const char *folder;             /* its finished folder */
  struct comm *group;             /* vocabulary group that shares the tables; borrowed. For a rank
                                     by itself: comm_split(&alone, world, rank) */
  enum kernels_choice kernels;    /* of the node that uses the model */
  enum precision_choice precision;
  int64_t step; /* of the weights: one that was published; 0: the last */
  bool raw;     /* the weights as trained, not their average */
};

struct model {
  struct flow flow; /* kind, options, vocabulary, parameters and ids, ready to use */
  struct kernels kernels;
  struct vocab vocab;
  struct params params;
  struct arena declarations, weights; /* owned */
  struct scalars facts;               /* owned; state of the weights' step */
};

/* What is fixed about the text of a model; saved with its weights. */
struct model_facts {
  int64_t vocabulary, positions, embedding_width;
  int64_t pad, bos, eos, seed;
};

/* Loads the model. Local, but for the rows that a flow with derived parameters prepares:
 * collective over the group. MISMATCH when the node has no weights or they do not fit the network
 * its options describe; DAMAGED names file and block. The model refers to itself: it must not be
 * moved. On failure there is nothing to close. */
enum status model_open(struct model *model, const struct model_request *request);

/* Accepts a zeroed model. Local. */
void model_close(struct model *model);

/* The hash of the weights and of the tokenizer whose ids the model knows. Borrowed. Local. */
const char *model_weights_hash(const struct model *model);
const char *model_tokenizer_hash(const struct model *model);

/* --- shared with training -------------------------------------------------------------------- */

/* The node whose options shape the network that `node` trains: itself, or for a distill node the
 * pretrain node upstream. Local. MISMATCH when there is none. */
enum status model_shape(const struct recipe_node **shape, const struct recipe *recipe,
                        const struct recipe_node *node);

/* The formulation that a pretrain or autoencode node trains. Borrowed. Local. */
const struct flow_kind *model_kind(const struct recipe_node *shape);

/* Opens the kernels that options ask for; `auto` is the best of this machine. Local. MISMATCH for a
 * pair that does not exist. */
enum status model_open_kernels(struct kernels *kernels, enum kernels_choice choice,
                               enum precision_choice precision);

/* To and from the state of the weights' step. Local. MISMATCH when a fact is missing. */
enum status model_save_facts(struct scalars *state, const struct model_facts *facts);
enum status model_load_facts(struct model_facts *facts, const struct scalars *state);

#endif
