/* The checkpoints of a training. */
#ifndef STAGES_TRAIN_TRAIN_SAVED_H
#define STAGES_TRAIN_TRAIN_SAVED_H

#include "pipeline/artefact/scalars.h"
#include "stages/train/train.h"

#define TRAIN_CHECKPOINTS "checkpoints" /* in the folder of the node */

/* The element type of the weights in the newest checkpoint of the node, or DTYPE_COUNT when there
 * is none: a run goes on in the precision it began with, whatever machine it finds itself on.
 * Collective over comm. */
enum status train_saved_element(enum dtype *element, const struct stage *stage);

/* The counts and facts that stand in the manifest of a step. Local. */
enum status train_saved_state(struct scalars *state, struct train *train);

/* Tries whether the place of the checkpoints takes one, and warns when the next two do not fit
 * there; with save_reserve, keeps room for one. Collective over world. WRITE when it does not take
 * what is written. */
enum status train_saved_preflight(struct train *train);

/* Gives up the room that save_reserve keeps; *dropped is false when there was none. Collective over
 * world. WRITE when it could not be given up. */
enum status train_saved_drop_reserve(struct train *train, bool *dropped);

/* Saves weights, masters, moments, averages and counts as they are after train->counts.step steps.
 * Collective over world. WRITE when it could not be written; training may go on. */
enum status train_saved_write(struct train *train);

/* Goes back to the newest sound checkpoint; *found is false when there is none. Collective over
 * world. MISMATCH when it is of other options or other data (both values are given), DAMAGED when
 * none is sound. */
enum status train_saved_read(struct train *train, bool *found);

#endif
