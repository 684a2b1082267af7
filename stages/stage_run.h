/* One node on all ranks, from the launch line to the published folder. */
#ifndef STAGES_STAGE_RUN_H
#define STAGES_STAGE_RUN_H

#include <stdbool.h>

#include "monitoring/log.h"
#include "pipeline/base/error.h"
#include "pipeline/config/kinds.h"
#include "sharding/comm.h"
#include "stages/stage.h"

/* The launch line: millrace-stage <kind> --run FOLDER --node NODE [--leased]. Texts are borrowed.
 */
struct stage_command {
  enum kind kind;
  const char *run, *node;
  bool leased; /* the driver that started this holds the node's lease */
};

/* Reads the launch line after the program's name. Local. USAGE, naming the nearest word. */
enum status stage_command_parse(struct stage_command *command, int argc, char *const argv[]);

/* Runs `function` for the node and publishes what it made. Rank 0 reads resolved.yaml, holds or
 * joins the lease and makes the folder; every failure is agreed on. Collective over world.
 * MISMATCH when the node does not fit the command or the number of ranks; what the stage returns.
 */
enum status stage_run(struct comm *world, struct log *log, const struct stage_command *command,
                      enum status (*function)(struct stage *));

#endif
