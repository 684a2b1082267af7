/* The configurations of a sweep node, each a run of its own in
 *
 *   runs/<run>/<sweep>.sweep/<name>/
 *
 * with the recipe of the nodes above the sweep. Nodes that a configuration leaves as they are, made
 * from such nodes only, are links to those of the run; the others are made there, with ledger, logs
 * and leases as everywhere, so that a configuration resumes, is waited for and is looked at like
 * any run.
 */
#ifndef PIPELINE_DRIVER_SWEEP_RUN_H
#define PIPELINE_DRIVER_SWEEP_RUN_H

#include "pipeline/base/error.h"
#include "pipeline/config/sweep.h"
#include "pipeline/driver/graph.h"
#include "pipeline/driver/launch.h"
#include "pipeline/driver/run.h"

/* A sweep node of a run. */
struct sweep_of {
  struct run *run;                /* borrowed */
  const struct recipe_node *node; /* borrowed */
  struct sweep sweep;             /* owned */
};

/* One of its configurations, opened. */
struct sweep_run {
  struct run run;
  bool shared[RECIPE_NODES]; /* links to the nodes of the sweep's run */
  struct graph graph;
};

enum sweep_state { SWEEP_FINISHED, SWEEP_FAILED, SWEEP_RUNNING, SWEEP_TO_BE_MADE, SWEEP_STATES };

/* Where a configuration stands. */
struct sweep_standing {
  enum sweep_state state;
  char node[RECIPE_NAME_BYTES]; /* failed: the node, and */
  int exit_code;                /* how its last attempt ended, and */
  bool final;                   /* nothing has changed since that another attempt could mend */
};

/* Which configurations are meant: of `tasks`, the one number `task`, counted from 1, has those at
 * task - 1, task - 1 + tasks, ... */
struct sweep_share {
  int64_t task, tasks;
};

/* Finds the configurations of a sweep node. Local. MISMATCH. Free it when this succeeded. */
enum status sweep_of_open(struct sweep_of *of, struct run *run, const struct recipe_node *node);
void sweep_of_close(struct sweep_of *of);

/* Opens a configuration; creates nothing. Local. MISMATCH, naming it, when its settings contradict
 * one another. Close it when this succeeded. */
enum status sweep_run_open(struct sweep_run *own, const struct sweep_of *of, size_t index);
void sweep_run_close(struct sweep_run *own);

/* Looks at a configuration. Local. */
enum status sweep_look(struct sweep_standing *standing, const struct sweep_of *of, size_t index);

/* Counts the configurations by state. Local. */
enum status sweep_count(size_t counts[SWEEP_STATES], const struct sweep_of *of);

/* Makes the configurations of a share that are not finished, one after the other; the sweep's own
 * inputs are finished. Where the recipe allows failures, final ones are left as they are. A failure
 * is printed, stands in the configuration's ledger and does not stop the others: `failure` receives
 * the first one's status. Local. STOPPED on request. */
enum status sweep_make(enum status *failure, const struct sweep_of *of, const struct site *site,
                       struct sweep_share share);

/* Checks the memory of a training node, or of those of every configuration of a sweep node, which
 * are opened, so that contradictions are found before anything is made. Local. MISMATCH. */
enum status sweep_check_node(struct run *run, const struct recipe_node *node,
                             const struct arguments *arguments);

#endif
