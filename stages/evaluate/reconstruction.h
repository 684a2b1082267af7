/* How well an autoencoder gives held-out rows back. */
#ifndef STAGES_EVALUATE_RECONSTRUCTION_H
#define STAGES_EVALUATE_RECONSTRUCTION_H

#include "monitoring/evaluation.h"
#include "stages/evaluate/diversity.h"
#include "stages/flow/solo.h"

/* Adds one model to the evaluation for each part of the objective of the finished autoencode node
 * `node`, whose model is `autoencoder`. The same bits on every rank and for any number of them.
 * Collective over stage->comm. */
enum status reconstruction_measure(struct evaluation *evaluation, struct solo *autoencoder,
                                   const struct stage *stage, const struct recipe_node *node,
                                   struct diversity_rows rows);

#endif
