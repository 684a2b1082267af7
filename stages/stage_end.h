/* Ends that the ranks of a stage cannot agree on. */
#ifndef STAGES_STAGE_END_H
#define STAGES_STAGE_END_H

#include <stdint.h>

#include "monitoring/watchdog.h"
#include "sharding/comm.h"

/* The name of the program in messages. */
#define STAGE_PROGRAM "millrace-stage"

/* Returns `status` unless it is a failure that this rank has alone, between two exchanges that the
 * others wait in: then says which rank failed in which step, what and where, and ends all ranks
 * with its exit code. A world of one rank returns every status. Local. */
enum status stage_end_alone(struct comm *world, int64_t step, enum status status);

/* Ends the process because of a hang, saying what was found unless that is NULL. For the thread of
 * a watchdog. Does not return. Local. */
void stage_end_hung(void *context, const struct watchdog_findings *found);

#endif
