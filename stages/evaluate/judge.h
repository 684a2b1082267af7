/* The judge: an autoregressive model that scores texts it did not write. */
#ifndef STAGES_EVALUATE_JUDGE_H
#define STAGES_EVALUATE_JUDGE_H

#include <stdint.h>

#include "stages/evaluate/diversity.h"
#include "stages/flow/model.h"
#include "stages/stage.h"

struct judge {
  const struct stage *stage; /* borrowed */
  struct comm alone;         /* this rank: the group of its vocabulary tables */
  struct model model;
  struct arena records;
};

/* Opens the model of a finished autoregressive node. Collective over stage->comm. MISMATCH when the
 * node trained something else. */
enum status judge_open(struct judge *judge, const struct stage *stage,
                       const struct recipe_node *node);
void judge_close(struct judge *judge);

/* exp of the mean negative log-likelihood of a token over all rows, their first tokens not scored.
 * Rows are dealt over the ranks; the result has the same bits on every rank and for any number of
 * them. Collective over stage->comm. */
enum status judge_perplexity(double *perplexity, struct judge *judge, struct diversity_rows rows);

#endif
