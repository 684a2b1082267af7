#include "stages/train/train_validate.h"

struct look {
  struct train *train;
  struct flow_batch batch;
  struct flow_losses losses;
};

static enum status use_tape(void *context, struct tape *tape) {
  struct look *look = context;
  double totals[FLOW_PARTS];
  for (int part = 0; part < FLOW_PARTS; part++) totals[part] = 1; /* they scale gradients only */
  look->losses = (struct flow_losses){{0}, {0}};
  tape->recording = tape->training = false;
  if (!arena_is_measuring(tape->arena)) tape->helper = &look->train->helper;
  return look->train->flow.kind->loss(&look->train->flow, tape, &look->batch, totals,
                                      &look->losses);
}

/* One pass over `batch` rows; adds to the losses. */
static enum status pass(struct train *train, int64_t index, struct train_losses *losses) {
  struct train_losses these;
  TRY(comm_agree(train->grid.world, train_data_load(&train->held_out, index)));
  TRY(train_losses_weigh(train, &train->held_out, &these));
  for (int64_t j = 0; j < grid_micro_steps(&train->grid); j++) {
    TRY(train_data_embed(&train->held_out, j));
    struct look look = {.train = train, .batch = train_data_micro(&train->held_out, j)};
    TRY(workspace_run(&train->workspace, use_tape, &look));
    train_losses_keep(train, j, &look.losses, false);
  }
  TRY(train_losses_sum(train, &these));
  for (int part = 0; part < FLOW_PARTS; part++) {
    losses->sum[part] += these.sum[part];
    losses->total[part] += these.total[part];
  }
  return STATUS_OK;
}

enum status train_validate(struct train *train, struct train_losses *losses) {
  timer_switch(&train->timer, TIMER_VALIDATION);
  train->flow.trained = train->counts.step;
  *losses = (struct train_losses){{0}, {0}};
  for (int64_t i = 0; i < order_steps(&train->held_out.order); i++) TRY(pass(train, i, losses));
  timer_switch(&train->timer, TIMER_OTHER);
  return STATUS_OK;
}
