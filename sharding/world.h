/* What the ranks of a world find about each other at the start (R-MPI-1, R-MPI-6): count, hosts,
 * processors, memory nodes, binding of ranks and threads, shared cores, space for shared memory.
 */
#ifndef SHARDING_WORLD_H
#define SHARDING_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/text.h"
#include "sharding/comm.h"

struct world_expectation {
  int64_t ranks;              /* as the launcher says; 0 = not known */
  const char *launcher;       /* borrowed; "mpirun", "srun"; NULL = started by hand */
  int64_t threads;            /* computing threads of each rank */
  uint64_t shared_bytes;      /* needed in /dev/shm by each rank; 0 = WORLD_SHARED_BYTES */
  const char *session_folder; /* borrowed; where the launcher keeps its files; NULL = not checked */
};

enum { WORLD_SHARED_BYTES = 8 << 20 };

struct world_report {
  int hosts;
  bool cores_shared;   /* two ranks are bound to the same core */
  bool oversubscribed; /* more computing threads than processors on some host */
  bool yields;         /* waiting ranks were told to give the core away (comm_init) */
};

/* Compares the world with what the launcher promised and describes it. On rank 0, `lines` gets one
 * line a rank (host, processors, memory nodes, threads) and one for each thing worth saying; elsewhere it
 * stays as it is. Collective. ENVIRONMENT, on all ranks alike, when the number of ranks is not the
 * launcher's (singletons), or shared memory or session space is too small. */
enum status world_check(struct comm *world, const struct world_expectation *expectation,
                        struct world_report *report, struct text *lines);

#endif
