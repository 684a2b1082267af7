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

/* One job, or an array of them, of a node. */
struct slurm_job {
  const struct recipe_node *node; /* borrowed */
  int64_t ranks, threads;         /* of a task */
  const char *flags;              /* more of them for `millrace node`; "" */
  const char *dependency;         /* "afterok:12:13"; "" for none */
  const char *array;              /* "1,4-6"; NULL: one job */
};

/* Appends the template with its placeholders replaced: {{RUN}} {{NODE}} {{FOLDER}} {{RANKS}}
 * {{THREADS}} {{CORES}} {{LAUNCHER}} {{MILLRACE}} {{FLAGS}}. Local. MISMATCH for an unknown
 * placeholder, with its line. */
enum status launch_slurm_script(struct text *script, const struct text *template_text,
                                const struct run *run, const struct site *site,
                                const struct slurm_job *job);

/* Submits the script in `path`, and writes the job's id. The tasks of an array log to
 * <node>.<task>.job.log. Local. ENVIRONMENT when sbatch fails. */
enum status launch_slurm_submit(char id[LEDGER_JOB_BYTES], const char *path, const struct run *run,
                                const struct slurm_job *job, const struct arguments *arguments);

/* Asks Slurm whether it would ever run such a job, without submitting it (R-SLM-8). Local. MISMATCH
 * when it would not, with what it says: no such partition or account, more nodes or time than there
 * are. Nothing is found where there is no sbatch, or no Slurm that answers it. */
enum status launch_slurm_try(const struct text *script, const struct slurm_job *job,
                             const struct arguments *arguments);

/* Tasks that an array of jobs may have: Slurm's MaxArraySize less one, its default where it cannot
 * be asked. Local. */
int64_t launch_slurm_tasks(void);

/* Whether squeue knows the job as waiting or running. A queue that cannot be asked does not.
 * Local. */
bool launch_slurm_is_queued(const char *job);

#endif
