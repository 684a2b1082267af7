/* What a finished training leaves: weights/, its hash, and the outputs of the manifest. */
#ifndef STAGES_TRAIN_TRAIN_PUBLISHED_H
#define STAGES_TRAIN_TRAIN_PUBLISHED_H

#include "stages/train/train.h"

enum { TRAIN_HASH_BYTES = 17 };

/* Hash of all masters and averages: 16 hexadecimal digits, the same for every layout. Collective
 * over world. */
enum status train_published_hash(struct train *train, char hex[TRAIN_HASH_BYTES]);

/* Whether the weights after a step before the last are to stay (publish_at). Local. */
bool train_published_is_due(const struct options *options, int64_t step);

/* Writes weights/step-N of the step that was just done; one that is there stays. Collective over
 * world. WRITE on failure. */
enum status train_published_step(struct train *train);

/* Writes the last step of weights/, lists the outputs in the manifest, and removes the checkpoints
 * unless some are to be kept. Collective over world. WRITE on failure. */
enum status train_published_write(struct train *train, const char *hash);

/* Whether an earlier start came as far as the last weights, so that nothing is left to train; then
 * the outputs are listed in the manifest. Collective over stage->comm. */
enum status train_published_find(bool *found, struct stage *stage);

#endif
