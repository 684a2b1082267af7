/* What a step of a training node costs: operations, bytes between ranks, and the time that follows
 * from measured rates.
 */
#ifndef PIPELINE_DRIVER_STEP_PLAN_H
#define PIPELINE_DRIVER_STEP_PLAN_H

#include <stdint.h>

#include "pipeline/driver/bench_rates.h"
#include "pipeline/driver/memory_plan.h"

struct step_plan {
  double flop_per_token;  /* forward and backward, nothing twice */
  double flop;            /* of a step, what is computed again included */
  double exchanged_bytes; /* sent by each rank in a step */
  double seconds;
};

/* `threads` of each rank. Local. */
struct step_plan step_plan_of(const struct training_layout *layout, int64_t threads,
                              const struct bench_rates *rates);

#endif
