/* What a training node takes on a layout of ranks, for `millrace plan`: parameters by part, memory
 * by account, operations, bytes between ranks and the time of a step; and whether it fits.
 */
#ifndef PIPELINE_DRIVER_TRAINING_PLAN_H
#define PIPELINE_DRIVER_TRAINING_PLAN_H

#include "pipeline/base/error.h"
#include "pipeline/driver/arguments.h"
#include "pipeline/driver/launch.h"
#include "pipeline/driver/run.h"
#include "pipeline/driver/step_plan.h"

/* Prints the plan of a training node; nothing for other nodes. Local. */
enum status training_plan_print(const struct run *run, const struct recipe_node *node,
                                const struct site *site, const struct bench_rates *rates);

/* Without --memory nothing. Local. MISMATCH, naming the account that needs most, when the ranks of
 * a host need more; USAGE for a size that cannot be read. */
enum status training_plan_check(const struct run *run, const struct recipe_node *node,
                                const struct arguments *arguments);

#endif
