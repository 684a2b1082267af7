/* Nodes as Slurm jobs: a job script from a template, and what is asked of sbatch and squeue. */
#ifndef PIPELINE_DRIVER_LAUNCH_SLURM_H
#define PIPELINE_DRIVER_LAUNCH_SLURM_H

#include <stdbool.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/driver/arguments.h"
#include "pipeline/driver/launch.h"
#include "pipeline/driver/ledger.h"
#include "pipeline/driver/run.h"

/* Appends the template with its placeholders replaced: {{RUN}} {{NODE}} {{FOLDER}} {{RANKS}}
 * {{THREADS}} {{CORES}} {{LAUNCHER}} {{MILLRACE}} {{FLAGS}}. Local. MISMATCH for an unknown
 * placeholder, with its line. */
enum status launch_slurm_script(struct text *script, const struct text *template_text,
                                const struct run *run, const struct site *site,
                                const struct recipe_node *node);

/* Submits the script in `path` after the jobs of `dependencies` ("12:13", "" for none) have ended
 * well, and writes the job's id. Local. ENVIRONMENT when sbatch fails. */
enum status launch_slurm_submit(char job[LEDGER_JOB_BYTES], const char *path,
                                const char *dependencies, const struct arguments *arguments);

/* Whether squeue knows the job as waiting or running. A queue that cannot be asked does not.
 * Local. */
bool launch_slurm_is_queued(const char *job);

#endif
