/* The command that runs a node: ranks of millrace-stage under a launcher, or millrace-report alone.
 *
 *   mpirun -np R ... millrace-stage <kind> --run runs/<run> --node <node> --leased
 */
#ifndef PIPELINE_DRIVER_LAUNCH_H
#define PIPELINE_DRIVER_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/recipe.h"
#include "pipeline/driver/arguments.h"
#include "pipeline/driver/run.h"

enum { LAUNCH_WORDS = 64, LAUNCH_BYTES = 16384 };

/* Words of a command, in one piece of memory. Zero-initialise. */
struct launch {
  char *words[LAUNCH_WORDS]; /* into `bytes`; ended by NULL */
  size_t count, used;
  char bytes[LAUNCH_BYTES];
  int stop_signal;      /* what asks it to stop */
  double start_seconds; /* that it may take before it can be asked (struct process_plan) */
};

/* Where programs are, and what the machine has. */
struct site {
  char stage[PATH_MAX], report[PATH_MAX];
  const char *launcher; /* borrowed; "mpirun" or "srun" */
  int64_t cores;        /* whole cores to use, over all hosts */
  bool root;
  bool by_hand; /* the stage program was named on the command line */
};

/* Finds the programs beside this one (or as the flags say) and counts cores. Local.
 * USAGE for an unknown launcher, ENVIRONMENT when a program is missing. */
enum status site_find(struct site *site, const struct arguments *arguments);

/* The path of a file beside this program. Local. MISMATCH when it is too long, ENVIRONMENT without
 * /proc. */
enum status site_beside(char path[PATH_MAX], const char *name);

/* Threads of each rank of a node. Local. */
int64_t launch_threads(const struct site *site, const struct recipe_node *node);

/* Adds a word, formatted. Local. MISMATCH when the command is too long. */
enum status launch_add(struct launch *launch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes the command that runs a node of the run. Local. MISMATCH when it is too long. */
enum status launch_node(struct launch *launch, const struct site *site, const struct run *run,
                        const struct recipe_node *node);

/* Appends the words as one line for people. Local. */
enum status launch_format(struct text *text, const struct launch *launch);

#endif
