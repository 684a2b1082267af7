/* Memory for one use of a tape after another: each is measured first, then run in an arena that is
 * large enough. The arena grows when a use needs more than any before, and is never given back.
 */
#ifndef STAGES_MODEL_TAPE_WORKSPACE_H
#define STAGES_MODEL_TAPE_WORKSPACE_H

#include <stddef.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "stages/model/kernels/kernels.h"
#include "stages/model/tape/tape.h"

/* What is done with the tape. Called twice, first with a measuring tape, on which kernels do
 * nothing and pointers are NULL; both calls ask for the same memory. */
typedef enum status workspace_use(void *context, struct tape *tape);

struct workspace {
  const struct kernels *kernels; /* borrowed */
  struct kernels measure;
  struct arena data, records; /* owned */
};

/* `account` names the arena in plans and errors (borrowed). Local. ENVIRONMENT when memory is out.
 */
enum status workspace_init(struct workspace *workspace, const struct kernels *kernels,
                           const char *account);

/* Accepts a zeroed workspace. Local. */
void workspace_free(struct workspace *workspace);

/* Measures `use`, makes room, and runs it. Local, but for what `use` does. Returns the status of
 * `use`; ENVIRONMENT when memory is out. */
enum status workspace_run(struct workspace *workspace, workspace_use *use, void *context);

/* The bytes that `use` needs, without running it. Local. */
enum status workspace_measure(struct workspace *workspace, size_t *bytes, workspace_use *use,
                              void *context);

#endif
