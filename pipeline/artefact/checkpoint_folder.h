/* The folder of a node's checkpoints: step-N/ (published, never written again), step-N.part.<run
 * id> (being written, or being removed), step-N.damaged (a mark with the reason, beside the step),
 * and `latest`, a file that holds the number of the newest step. No MPI: one rank or a command
 * calls these.
 */
#ifndef PIPELINE_ARTEFACT_CHECKPOINT_FOLDER_H
#define PIPELINE_ARTEFACT_CHECKPOINT_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

struct checkpoint_step {
  int64_t step;
  bool damaged;
};

struct checkpoint_steps {
  int64_t count;
  struct checkpoint_step *items; /* owned; newest first */
};

/* Published steps, newest first. A folder that does not exist has none. Local. ENVIRONMENT when it
 * cannot be read. */
enum status checkpoint_folder_list(struct checkpoint_steps *steps, const char *folder);
void checkpoint_folder_free(struct checkpoint_steps *steps);

/* Path of a step, and of a step being written by `run_id`. Local. MISMATCH when too long. */
enum status checkpoint_folder_step(char path[PATH_MAX], const char *folder, int64_t step);
enum status checkpoint_folder_part(char path[PATH_MAX], const char *folder, int64_t step,
                                   const char *run_id);

/* Whether a step is published and not marked damaged. Local. */
bool checkpoint_folder_has(const char *folder, int64_t step);

/* Renames a complete .part to its step, flushes the folder, and replaces `latest`. A step that is
 * marked damaged gives way. Local. WRITE on failure, also when the step is published and sound. */
enum status checkpoint_folder_publish(const char *folder, int64_t step, const char *run_id);

/* Replaces `latest`: the last move of publishing, and the mending of a lost pointer. Local. WRITE
 * on failure. */
enum status checkpoint_folder_point(const char *folder, int64_t step);

/* The step that `latest` names. Local. MISMATCH when there is none, DAMAGED when it is no number.
 */
enum status checkpoint_folder_latest(const char *folder, int64_t *step);

/* Sets a mark so that later starts do not try this step. Local. WRITE on failure. */
enum status checkpoint_folder_mark(const char *folder, int64_t step, const char *reason);

/* Which published steps stay: the newest `newest` (at least 2) sound ones, every multiple of
 * `every` (0: none for that), and `best` (-1: none). */
struct checkpoint_retention {
  int64_t newest, every, best;
};

/* Removes the other steps; damaged ones stay while they are newer than the oldest of the newest.
 * Local. WRITE on failure. */
enum status checkpoint_folder_retain(const char *folder, const struct checkpoint_retention *keep);

/* Removes what dead runs left: every .part that is not of `run_id` (NULL: all) and older than
 * `age_seconds`. Local. WRITE on failure. */
enum status checkpoint_folder_sweep(const char *folder, const char *run_id, int64_t age_seconds);

#endif
