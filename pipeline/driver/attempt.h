/* One attempt at a node: lease, launch, ledger, and what came of it. */
#ifndef PIPELINE_DRIVER_ATTEMPT_H
#define PIPELINE_DRIVER_ATTEMPT_H

#include "pipeline/base/error.h"
#include "pipeline/driver/graph.h"
#include "pipeline/driver/launch.h"
#include "pipeline/driver/run.h"

/* Makes one node, whose inputs are finished, unless it is finished by now. Waits while another
 * driver has its lease. Prints a line before and after. Local. The status that the stage ended
 * with; INTERNAL when it ended well but published nothing; STOPPED on request. */
enum status attempt_node(struct graph *graph, struct run *run, const struct site *site,
                         size_t node);

#endif
