/* The weights by which a training mixes the inputs of its tokenize node. */
#ifndef STAGES_TRAIN_TRAIN_MIX_H
#define STAGES_TRAIN_TRAIN_MIX_H

#include "pipeline/config/options.h"
#include "sharding/order.h"

/* Makes the mix of the training rows of a finished tokenize node, of which the first `rows` are
 * used. One weight: no mix. Local. MISMATCH when there are not as many weights as inputs, and as
 * order_mix_make; DAMAGED for a broken manifest. */
enum status train_mix_make(struct order_mix *mix, const char *tokens_folder,
                           const struct option_reals *weights, int64_t rows);

#endif
