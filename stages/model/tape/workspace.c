#include "stages/model/tape/workspace.h"

#include <string.h>

enum { RECORD_BYTES = 256 << 20 }; /* reserved, not touched: structs of values and records */

enum status workspace_init(struct workspace *workspace, const struct kernels *kernels,
                           const char *account) {
  *workspace = (struct workspace){.kernels = kernels};
  workspace->data.account = account;
  TRY(kernels_open(&workspace->measure, "measure", kernels->element));
  return arena_init(&workspace->records, "records", RECORD_BYTES);
}

void workspace_free(struct workspace *workspace) {
  arena_free(&workspace->data);
  arena_free(&workspace->records);
  memset(workspace, 0, sizeof(*workspace));
}

static enum status use_once(struct workspace *workspace, const struct kernels *kernels,
                            struct arena *arena, workspace_use *use, void *context) {
  struct tape tape;
  tape_init(&tape, kernels, arena, &workspace->records);
  const enum status status = use(context, &tape);
  arena_reset(&workspace->records, 0);
  return status == STATUS_OK ? tape.status : status;
}

enum status workspace_measure(struct workspace *workspace, size_t *bytes, workspace_use *use,
                              void *context) {
  struct arena measuring;
  arena_measure(&measuring, workspace->data.account);
  TRY(use_once(workspace, &workspace->measure, &measuring, use, context));
  *bytes = measuring.peak;
  return STATUS_OK;
}

static enum status make_room(struct arena *arena, size_t bytes) {
  if (arena->size >= bytes) return STATUS_OK;
  const char *account = arena->account;
  arena_free(arena);
  arena->account = account; /* kept for the next try when memory is out */
  return arena_init(arena, account, bytes);
}

enum status workspace_run(struct workspace *workspace, workspace_use *use, void *context) {
  size_t bytes = 0;
  TRY(workspace_measure(workspace, &bytes, use, context));
  TRY(make_room(&workspace->data, bytes));
  arena_reset(&workspace->data, 0);
  return use_once(workspace, workspace->kernels, &workspace->data, use, context);
}
