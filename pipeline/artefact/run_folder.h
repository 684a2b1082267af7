/* The folder of a node: runs/<name>/<node>, called <node>.partial while it is being written.
 *
 * `.partial` holds a file `fingerprint`: what it was begun for (options and inputs), a text of any
 * length. It is reused only by the same fingerprint, and the file stays in the published folder,
 * where the driver compares it to find what has changed; it is not one of the outputs. Publishing
 * verifies the outputs, writes the manifest, renames and flushes the parent; an older finished
 * folder of the same node gives way in the same move.
 */
#ifndef PIPELINE_ARTEFACT_RUN_FOLDER_H
#define PIPELINE_ARTEFACT_RUN_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/base/error.h"

#define RUN_FOLDER_FINGERPRINT "fingerprint"

struct run_folder {
  char path[PATH_MAX];    /* finished */
  char partial[PATH_MAX]; /* being written */
  char old[PATH_MAX];     /* what publishing replaces, for a moment */
};

enum run_folder_start {
  RUN_FOLDER_FRESH,     /* nothing was there */
  RUN_FOLDER_RESUMED,   /* a .partial of the same fingerprint was kept */
  RUN_FOLDER_DISCARDED, /* a .partial of another fingerprint was removed: say so */
  RUN_FOLDER_FINISHED   /* a publication that had been cut short was completed: nothing to do */
};

/* Names the folders of a node; creates nothing. Local. MISMATCH when the path is too long. */
enum status run_folder_locate(struct run_folder *folder, const char *run, const char *node);

/* Whether the node is finished: its manifest is there. Local. */
bool run_folder_is_finished(const struct run_folder *folder);

/* Makes or takes up `.partial` for `fingerprint`. Debris of an interrupted publication is removed.
 * Local; one rank calls it. WRITE on failure. */
enum status run_folder_begin(const struct run_folder *folder, const char *fingerprint,
                             enum run_folder_start *start);

/* Verifies what the manifest lists, writes it, renames `.partial` to the final name and flushes the
 * parent. Local; one rank calls it when all have finished. DAMAGED when an output does not fit,
 * WRITE on failure; `.partial` stays. */
enum status run_folder_publish(const struct run_folder *folder, struct manifest *manifest);

#endif
