/* Making one node's folder: what every program that runs a node does before and after its work.
 *
 *   publication_begin   takes up or makes <node>.partial for the node's fingerprint
 *   ... the work writes into publication.folder.partial and fills in publication.manifest ...
 *   publication_finish  completes the manifest and publishes the folder
 */
#ifndef PIPELINE_DRIVER_PUBLICATION_H
#define PIPELINE_DRIVER_PUBLICATION_H

#include <stdint.h>

#include "pipeline/artefact/manifest.h"
#include "pipeline/artefact/run_folder.h"
#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/config/recipe.h"

struct publication {
  const struct recipe *recipe;    /* borrowed */
  const struct recipe_node *node; /* borrowed */
  const char *run_folder;         /* borrowed */
  struct run_folder folder;
  enum run_folder_start start; /* RUN_FOLDER_FINISHED: there is nothing to do */
  struct text fingerprint;     /* owned */
  struct manifest manifest;    /* owned; the work adds outputs, facts and timings */
};

/* Local; one rank calls it. MISMATCH when an input is not finished or a file is missing, WRITE when
 * the folder cannot be made. Free it in any case. */
enum status publication_begin(struct publication *publication, const struct recipe *recipe,
                              const struct recipe_node *node, const char *run_folder);

/* Fills in kind, node, build, configuration, inputs and world of the manifest, and publishes.
 * Local; one rank calls it when all have finished. DAMAGED, WRITE. */
enum status publication_finish(struct publication *publication, int64_t world);

/* Accepts a zeroed publication. Local. */
void publication_free(struct publication *publication);

#endif
