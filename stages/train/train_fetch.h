/* Weights that are kept by their owners and fetched layer by layer (option zero: 3).
 *
 * The matrices of a network's layers, and of a teacher's, exist on one rank each; vectors, tables
 * and what belongs to no layer stay on every rank.
 */
#ifndef STAGES_TRAIN_TRAIN_FETCH_H
#define STAGES_TRAIN_TRAIN_FETCH_H

#include "stages/train/train.h"

/* Numbers the layers and says which rank keeps what; before weights are bound. Local. */
void train_fetch_plan(struct train *train);

/* Takes the buffers and makes train->helper. Local. */
enum status train_fetch_open(struct train *train);

/* The weights have changed. Collective over world. */
enum status train_fetch_again(struct train *train);

/* Waits for what is on its way, before the communicators go. Collective over world. */
void train_fetch_close(struct train *train);

#endif
