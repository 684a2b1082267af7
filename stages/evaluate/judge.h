/* The judge: an autoregressive model that scores texts it did not write. */
#ifndef STAGES_EVALUATE_JUDGE_H
#define STAGES_EVALUATE_JUDGE_H

#include "stages/evaluate/diversity.h"
#include "stages/flow/solo.h"

/* exp of the mean negative log-likelihood of a token over all rows, their first tokens not scored.
 * `judge` is a model of method ar. Rows are dealt over the ranks; the result has the same bits on
 * every rank and for any number of them. Collective over stage->comm. */
enum status judge_perplexity(double *perplexity, struct solo *judge, const struct stage *stage,
                             struct diversity_rows rows);

#endif
