/* What a sweep takes, for `millrace plan`. */
#ifndef PIPELINE_DRIVER_SWEEP_PLAN_H
#define PIPELINE_DRIVER_SWEEP_PLAN_H

#include "pipeline/base/error.h"
#include "pipeline/driver/bench_rates.h"
#include "pipeline/driver/launch.h"
#include "pipeline/driver/sweep_run.h"

struct sweep_plan {
  size_t configurations, finished;
  size_t trainings;      /* nodes that train, of configurations that are to be made */
  double flop, seconds;  /* of these, one after the other */
  uint64_t memory_bytes; /* of all ranks of the largest */
  uint64_t disk_bytes;   /* of all nodes that are to be made */
};

/* Sums up the configurations of a sweep that are not finished. `look`: the sweep's inputs are, so
 * that finished configurations can be told. Local. MISMATCH. */
enum status sweep_plan_of(struct sweep_plan *plan, const struct sweep_of *of,
                          const struct site *site, const struct bench_rates *rates, bool look);

/* Prints it. Local. */
void sweep_plan_print(const struct sweep_plan *plan);

#endif
