#include "stages/flow/solo.h"

static enum status open_model(struct solo *solo, const struct stage *stage,
                              const struct recipe_node *node, int64_t step,
                              enum precision_choice precision, const char *account) {
  char folder[STAGE_PATH_BYTES];
  TRY(stage_folder(folder, stage, node));
  TRY(model_open(&solo->model, &(struct model_request){.recipe = stage->recipe,
                                                       .node = node,
                                                       .folder = folder,
                                                       .step = step,
                                                       .group = &solo->alone,
                                                       .kernels = stage->options->kernels,
                                                       .precision = precision}));
  return workspace_init(&solo->workspace, &solo->model.kernels, account);
}

enum status solo_open(struct solo *solo, const struct stage *stage, const struct recipe_node *node,
                      int64_t step, enum precision_choice precision, const char *account) {
  *solo = (struct solo){0};
  TRY(comm_split(&solo->alone, stage->comm, stage->comm->rank));
  const enum status status =
      comm_agree(stage->comm, open_model(solo, stage, node, step, precision, account));
  if (status != STATUS_OK) solo_close(solo);
  TRY(status);
  return STATUS_OK;
}

void solo_close(struct solo *solo) {
  workspace_free(&solo->workspace);
  model_close(&solo->model);
  comm_free(&solo->alone);
}
