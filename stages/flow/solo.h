/* A finished model on each rank by itself, with the memory to run it: what sampling and evaluation
 * do with models. Their work is cut into units that are dealt over the ranks; no unit needs another
 * rank.
 */
#ifndef STAGES_FLOW_SOLO_H
#define STAGES_FLOW_SOLO_H

#include "sharding/comm.h"
#include "stages/flow/model.h"
#include "stages/model/tape/workspace.h"
#include "stages/stage.h"

struct solo {
  struct comm alone; /* this rank: the group of its vocabulary tables */
  struct model model;
  struct workspace workspace;
};

/* Opens the model of the finished training node `node`, as it was after `step` steps (0: all), with
 * the kernels of the stage's own node and the given precision. `account` names the memory (borrowed). Collective over stage->comm; all ranks
 * return the same status: those of model_open. On failure there is nothing to close. The model
 * refers to itself: it must not be moved. */
enum status solo_open(struct solo *solo, const struct stage *stage, const struct recipe_node *node,
                      int64_t step, enum precision_choice precision, const char *account);

/* Accepts a zeroed solo. Collective over stage->comm. */
void solo_close(struct solo *solo);

#endif
