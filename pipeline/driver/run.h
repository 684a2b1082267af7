/* A run: a resolved recipe and its folder runs/<name>, which holds
 *
 *   resolved.yaml   the recipe with every default, as last asked for
 *   ledger.jsonl    one line for each attempt and submission
 *   content.cache   hashes of files outside the run, by size and time
 *   <node>/         finished; <node>.partial/ being written; <node>.lease while it runs
 *   <node>.log      what every attempt printed
 */
#ifndef PIPELINE_DRIVER_RUN_H
#define PIPELINE_DRIVER_RUN_H

#include <limits.h>

#include "pipeline/base/error.h"
#include "pipeline/config/recipe.h"
#include "pipeline/driver/arguments.h"
#include "pipeline/driver/content.h"

#define RUN_RESOLVED "resolved.yaml"
#define RUN_LEDGER "ledger.jsonl"
#define RUN_CACHE "content.cache"

struct run {
  struct recipe recipe;
  char folder[PATH_MAX]; /* absolute */
  struct content_cache cache;
};

/* Opens the run that the command line names: by a recipe (first operand or the one after `skip`
 * operands) with its --set, by a run folder (--run, or an operand that is one, or one in --runs),
 * or else the run in --runs that was asked for last. Creates nothing. Local. MISMATCH, USAGE. */
enum status run_open(struct run *run, const struct arguments *arguments, size_t skip);

/* Opens the run of an existing run folder. Local. MISMATCH when it has no resolved.yaml. */
enum status run_open_folder(struct run *run, const char *folder);

/* Reads the remembered hashes, if the folder has some. Local. */
void run_open_cache(struct run *run);

/* Makes the folder and writes resolved.yaml unless it already says the same. Local. MISMATCH when
 * it says something else while a node of the run is at work. */
enum status run_prepare(const struct run *run);

/* Whether node `index` is to be made for the sake of `target` (NULL: of every node). Local. */
bool run_wants(const struct run *run, const struct recipe_node *target, size_t index);

/* Writes "<folder>/<name><ending>" to `path`. Local. MISMATCH when it is too long. */
enum status run_path(char path[PATH_MAX], const struct run *run, const char *name,
                     const char *ending);

/* Saves the cache of content hashes if the folder exists, and frees. Accepts a zeroed run. Local.
 */
void run_close(struct run *run);

#endif
