/* Targets that were drawn for sources, against their references. */
#ifndef STAGES_EVALUATE_PAIRS_H
#define STAGES_EVALUATE_PAIRS_H

#include <stdbool.h>

#include "pipeline/base/error.h"
#include "stages/stage.h"

/* Whether the sample nodes that a node is from drew targets of pairs (recipe_check.c: all or
 * none). Local. */
bool pairs_apply(const struct stage *stage);

/* Writes evaluation.json with the BLEU and ROUGE of each set of samples, and of the first words of
 * the sources, as many as references have on average. The same bytes for any number of ranks.
 * Collective over stage->comm. */
enum status pairs_evaluate(struct stage *stage);

#endif
