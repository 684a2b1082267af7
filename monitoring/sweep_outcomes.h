/* What came of a node, as numbers with names: the columns of a sweep's table.
 *
 *   base.loss, base.training_loss          last of a training node, on held-out rows and on its own
 *   base.nfe4.judge_perplexity             of a generator at 4 network calls, of an evaluate node;
 *   base.nfe4.token_entropy                without nfe4 where calls are not counted
 *   base.nfe4.distinct_1, .distinct_2
 *   base.gaussian64.nats                   likelihood bound, by form and steps of its grid
 *   texts.nfe4.bleu, .rouge_1 ...          of targets that were drawn for sources
 *   autoencoder.ce                         part of a model's objective
 */
#ifndef MONITORING_SWEEP_OUTCOMES_H
#define MONITORING_SWEEP_OUTCOMES_H

#include <stddef.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/recipe.h"

enum { OUTCOME_NAME_BYTES = 224 };

struct outcome {
  char name[OUTCOME_NAME_BYTES];
  double value;
};

/* Zero-initialise. */
struct outcomes {
  struct text items; /* array of struct outcome */
};

/* Adds the outcomes of a finished node, whose folder is `folder`. Local. MISMATCH, DAMAGED name the
 * file. */
enum status outcomes_add(struct outcomes *outcomes, const struct recipe_node *node,
                         const char *folder);
void outcomes_free(struct outcomes *outcomes);

static inline size_t outcomes_count(const struct outcomes *outcomes) {
  return outcomes->items.length / sizeof(struct outcome);
}

/* One of them; borrowed. Local. */
const struct outcome *outcomes_at(const struct outcomes *outcomes, size_t index);

/* The one called `name`, or NULL. Borrowed. Local. */
const struct outcome *outcomes_find(const struct outcomes *outcomes, const char *name);

#endif
