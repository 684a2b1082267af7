/* What every stage is given: its node of the recipe, its folders, its ranks.
 *
 * A stage is a function `enum status <kind>_stage(struct stage *stage)` listed in stages.def and
 * called on every rank by stages/main.c, which has parsed the command line, read resolved.yaml,
 * checked the rank count and made the node's folder, and which publishes the folder afterwards:
 *
 *   - `folder` is runs/<run>/<node>.partial. The stage writes its outputs there. What an earlier
 *     attempt with the same options left in it (journal, checkpoints) is still there: resume.
 *   - It returns STATUS_OK when all outputs are complete and rank 0's manifest lists them; main
 *     fills in the manifest's kind, node, build, world, configuration and inputs, and publishes.
 *   - It returns STATUS_STOPPED, on all ranks, after saving, when a stop was requested.
 *   - Any other status must be agreed on by all ranks (comm_agree) before the stage returns it.
 *
 * Layer: below flow/ and the stage folders, above everything outside stages/; kernels, tape, layers
 * and networks do not see it.
 */
#ifndef STAGES_STAGE_H
#define STAGES_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/error.h"
#include "pipeline/config/kinds.h"
#include "pipeline/config/options.h"
#include "pipeline/config/recipe.h"

struct comm;
struct log;
struct manifest;

enum { STAGE_PATH_BYTES = 4096 };

struct stage {
  const struct recipe *recipe;    /* the whole run, every default filled in */
  const struct recipe_node *node; /* this node: name, kind, inputs */
  const struct options *options;  /* node->options */
  struct comm *comm;              /* all ranks of the stage; borrowed */
  const char *run_folder;         /* runs/<run> */
  const char *folder;             /* runs/<run>/<node>.partial, writable */
  struct manifest *manifest;      /* of rank 0: the stage adds outputs, facts and timings */
  struct log *log;                /* what the stage says; silent on all ranks but 0 */
};

/* Writes the finished folder of the nearest node upstream of one of the kinds (IN_... mask) to
 * `path`, and the node itself to `*node` unless that is NULL: its options tell how the input was
 * made. Local. MISMATCH when the recipe has no such node upstream, or two equally near. */
enum status stage_input(char path[STAGE_PATH_BYTES], const struct recipe_node **node,
                        const struct stage *stage, unsigned kinds);

/* The finished folder of a node. Local. MISMATCH when its path is too long. */
enum status stage_folder(char path[STAGE_PATH_BYTES], const struct stage *stage,
                         const struct recipe_node *node);

/* Whether this rank was asked to stop (SIGTERM, SIGINT, SIGUSR1, SIGUSR2). Ranks learn of it at
 * different moments: reduce it before acting on it. Local. */
bool stage_stop_requested(void);

/* Makes those signals requests; a second one ends the process with exit code 75. One thread waits
 * for them, all others, and what they start, have them blocked (R-SLM-7): no call of theirs is
 * interrupted. Once per process, by main, before there are other threads. Local. ENVIRONMENT when
 * the thread cannot be started. */
enum status stage_watch_signals(void);

#endif
