/* How well an autoencoder gives held-out rows back. */
#ifndef STAGES_EVALUATE_RECONSTRUCTION_H
#define STAGES_EVALUATE_RECONSTRUCTION_H

#include "monitoring/evaluation.h"
#include "stages/evaluate/diversity.h"
#include "stages/stage.h"

/* Adds one model to the evaluation for each part of the objective of the finished autoencode node.
 * Collective over stage->comm. */
enum status reconstruction_measure(struct evaluation *evaluation, const struct stage *stage,
                                   const struct recipe_node *node, struct diversity_rows rows);

#endif
