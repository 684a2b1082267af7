/* The vocabulary head's log-sum-exp with Gaussian noise on every logit. */
#ifndef STAGES_MODEL_LAYERS_HEAD_NOISE_H
#define STAGES_MODEL_LAYERS_HEAD_NOISE_H

#include "pipeline/base/random.h"
#include "stages/model/layers/head.h"

struct head_noise {
  double scale;                        /* of the noise */
  double advantage;                    /* added to the target's logit */
  const struct random_stream *streams; /* [n / positions], borrowed; the noise of id v at position
                                          t of a row is its draw t * V + v */
  int64_t positions;
};

/* values[n] = log sum_v exp(logit_v + scale xi_v + advantage [v = target]) - scale xi_target, xi
 * standard normal, for tokens that all have a target: one streamed pass, never n x V. No gradient.
 * head->weight is not read. Collective over the vocabulary group; failures are left in
 * tape->status. */
void head_noise_log_sum_exp(struct tape *tape, double *values, struct value *x,
                            const struct head *head, const struct head_noise *noise);

#endif
