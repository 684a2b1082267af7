/* The stages that train: autoencode, pretrain and distill share one loop. */
#ifndef STAGES_TRAIN_TRAIN_STAGE_H
#define STAGES_TRAIN_TRAIN_STAGE_H

#include "pipeline/base/error.h"
#include "stages/stage.h"

/* Each trains the network of its node (train.h) and leaves weights/ and metrics.jsonl. Collective
 * over stage->comm. STOPPED after saving when a stop was requested; NUMERIC when the budget of
 * skipped steps is spent; WRITE, DAMAGED and MISMATCH as their messages say. */
enum status autoencode_stage(struct stage *stage);
enum status pretrain_stage(struct stage *stage);
enum status distill_stage(struct stage *stage);

#endif
