#include "stages/train/train_stage.h"

#include "monitoring/log.h"
#include "stages/train/train.h"
#include "stages/train/train_published.h"
#include "stages/train/train_report.h"

static enum status train_all(struct train *train) {
  char hash[TRAIN_HASH_BYTES];
  TRY(train_report_start(train));
  TRY(train_loop(train));
  TRY(train_published_hash(train, hash));
  TRY(comm_agree(train->grid.world, train_report_end(train, hash)));
  return train_published_write(train, hash);
}

static enum status train_run(struct stage *stage) {
  bool found;
  TRY(train_published_find(&found, stage));
  if (found) return STATUS_OK;
  struct train train;
  enum status status = train_open(&train, stage);
  if (status == STATUS_OK) status = train_all(&train);
  train_close(&train);
  return status;
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
