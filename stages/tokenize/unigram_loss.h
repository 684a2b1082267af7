/* The loss that a model which learnt nothing but frequencies would have. */
#ifndef STAGES_TOKENIZE_UNIGRAM_LOSS_H
#define STAGES_TOKENIZE_UNIGRAM_LOSS_H

#include <stdint.h>

/* Cross-entropy in nats per token of counts under the distribution (of + 1) / (sum of + size):
 * what a unigram model with add-one smoothing loses on them. 0 when there are no counts. Local. */
double unigram_loss(const int64_t *counts, const int64_t *of, int64_t size);

#endif
