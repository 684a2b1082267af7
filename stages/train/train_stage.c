#include "stages/train/train_stage.h"

#include <stdio.h>

#include "monitoring/log.h"
#include "pipeline/artefact/manifest.h"
#include "stages/train/train.h"
#include "stages/train/train_published.h"
#include "stages/train/train_report.h"

#define EXPORT_NAME "model.safetensors"
#define CONFIG_NAME "config.json"

static enum status train_all(struct train *train) {
  char hash[TRAIN_HASH_BYTES];
  TRY(train_report_start(train));
  TRY(train_loop(train));
  TRY(train_published_hash(train, hash));
  TRY(comm_agree(train->grid.world, train_report_end(train, hash)));
  return train_published_write(train, hash);
}

static enum status path_of(char path[STAGE_PATH_BYTES], const struct stage *stage,
                           const char *name) {
  CHECK(snprintf(path, STAGE_PATH_BYTES, "%s/%s", stage->folder, name) < STAGE_PATH_BYTES,
        STATUS_MISMATCH, "path too long: '%s'", stage->folder);
  return STATUS_OK;
}

static enum status write_config(struct stage *stage, const struct flow *flow) {
  char path[STAGE_PATH_BYTES];
  if (!flow->kind->write_config) return STATUS_OK;
  TRY(path_of(path, stage, CONFIG_NAME));
  TRY(flow->kind->write_config(flow, path));
  return manifest_add_file(stage->manifest, stage->folder, CONFIG_NAME);
}

static enum status write_file(struct stage *stage, struct comm *alone) {
  char path[STAGE_PATH_BYTES];
  struct model model;
  TRY(path_of(path, stage, EXPORT_NAME));
  TRY(model_open(&model, &(struct model_request){.recipe = stage->recipe,
                                                 .node = stage->node,
                                                 .folder = stage->folder,
                                                 .group = alone,
                                                 .kernels = stage->options->kernels,
                                                 .precision = PRECISION_FP32}));
  enum status status = model.flow.kind->write_file(&model.flow, path);
  if (status == STATUS_OK) status = write_config(stage, &model.flow);
  model_close(&model);
  TRY(status);
  return manifest_add_file(stage->manifest, stage->folder, EXPORT_NAME);
}

/* The published weights once more, under the names of the formulation's authors. */
static enum status export_weights(struct stage *stage) {
  struct comm alone;
  if (!stage->options->export_weights) return STATUS_OK;
  TRY(comm_split(&alone, stage->comm, stage->comm->rank));
  const enum status status = stage->comm->rank == 0 ? write_file(stage, &alone) : STATUS_OK;
  comm_free(&alone);
  return comm_agree(stage->comm, status);
}

static enum status train_new(struct stage *stage) {
  struct train train;
  enum status status = train_open(&train, stage);
  if (status == STATUS_OK) status = train_all(&train);
  train_close(&train);
  return status;
}

static enum status train_run(struct stage *stage) {
  bool found;
  TRY(train_published_find(&found, stage));
  if (!found) TRY(train_new(stage));
  return export_weights(stage);
}

enum status autoencode_stage(struct stage *stage) {
  return train_run(stage);
}

enum status pretrain_stage(struct stage *stage) {
  return train_run(stage);
}

enum status distill_stage(struct stage *stage) {
  return train_run(stage);
}
