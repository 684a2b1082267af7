/* What a training reads: folders, tokenizer, hashes. */
#ifndef STAGES_TRAIN_TRAIN_INPUTS_H
#define STAGES_TRAIN_TRAIN_INPUTS_H

#include "stages/train/train.h"

/* Finds the inputs of the node and what is fixed about them; sets the folders, facts, hashes, shape
 * and, for a distill node, the base. Local. MISMATCH when an input is missing or of another kind.
 */
enum status train_inputs_find(struct train *train);

/* Opens the rows of both sides and fingerprints them. Local. */
enum status train_inputs_open(struct train *train);

#endif
