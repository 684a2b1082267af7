/* Which nodes of a run are finished, stale, or to be made. */
#ifndef PIPELINE_DRIVER_GRAPH_H
#define PIPELINE_DRIVER_GRAPH_H

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/recipe.h"
#include "pipeline/driver/lease.h"
#include "pipeline/driver/run.h"

enum node_state {
  NODE_FINISHED,   /* made, from the present options and inputs */
  NODE_STALE,      /* made, but from other options or inputs */
  NODE_MISSING,    /* not begun */
  NODE_UNFINISHED, /* begun with the present options: it would resume */
  NODE_STATE_COUNT
};

struct node_report {
  enum node_state state;
  enum status problem; /* not OK: it can neither be used nor made; the reason is in `why` */
  bool waits;   /* an input is not finished, so what it would be made from is not known yet */
  bool running; /* somebody holds its lease */
  char holder[LEASE_HOLDER_BYTES]; /* who */
  struct text why; /* owned; one reason a line: "steps: 600 -> 800", "from tokens: stale" */
};

struct graph {
  struct node_report nodes[RECIPE_NODES]; /* by index in the recipe */
};

/* The word for a state, such as "stale". Borrowed. Local. */
const char *graph_state_name(enum node_state state);

/* Looks at every node of the run. A node's problem is MISMATCH when a file that it reads is
 * missing, DAMAGED when its finished folder lacks what its manifest lists. Local. */
enum status graph_examine(struct graph *graph, struct run *run);

/* Looks at one node again, whose inputs have been looked at. Local. */
enum status graph_examine_node(struct graph *graph, struct run *run, size_t node);

/* Raises the node's problem, if it has one. Local. */
enum status graph_check_node(const struct graph *graph, size_t node);

void graph_free(struct graph *graph);

#endif
