/* The autoregressive baseline as a judge of texts. */
#ifndef STAGES_FLOW_AR_H
#define STAGES_FLOW_AR_H

#include "stages/flow/flow.h"

/* nll[count * positions]: the negative log-likelihood in nats of each valid token given those
 * before it in its row; 0 for first tokens and padding. `flow` is of the kind "ar". Nothing is
 * recorded. Collective over the vocabulary group. */
enum status ar_score(struct flow *flow, struct tape *tape, const struct flow_batch *batch,
                     double *nll);

#endif
