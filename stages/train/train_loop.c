/* The loop of a training: steps, what is said and recorded of them, checkpoints, the end. */
#include <inttypes.h>

#include "monitoring/log.h"
#include "stages/train/train_published.h"
#include "stages/train/train_report.h"
#include "stages/train/train_saving.h"
#include "stages/train/train_step.h"
#include "stages/train/train_straggler.h"
#include "stages/train/train_validate.h"
#include "stages/train/train_watch.h"

enum { SKIPS_IN_A_ROW = 10, SKIPS_AT_LEAST = 20, SKIPS_SHARE = 100 };

static enum status check_budget(const struct train *train) {
  const struct train_counts *counts = &train->counts;
  const int64_t share = train->options->steps / SKIPS_SHARE;
  const int64_t most = share > SKIPS_AT_LEAST ? share : SKIPS_AT_LEAST;
  CHECK(counts->skipped_in_row < SKIPS_IN_A_ROW && counts->skipped <= most, STATUS_NUMERIC,
        "step %" PRId64 ": %" PRId64 " steps in a row and %" PRId64
        " in all had a loss or gradient that is not finite (limits %d and %" PRId64 ")",
        counts->step, counts->skipped_in_row, counts->skipped, SKIPS_IN_A_ROW, most);
  return STATUS_OK;
}

static bool is_due(int64_t step, int64_t every, int64_t last) {
  return step % every == 0 || step == last;
}

static enum status validate(struct train *train) {
  struct train_losses losses;
  TRY(train_validate(train, &losses));
  train->best.validated = train->counts.step;
  train->best.validated_loss = train_losses_objective(&losses, train->flow.kind);
  return comm_agree(train->grid.world, train_report_validation(train, &losses));
}

/* Weights that stay come before the checkpoint of their step: a resumed run does not come by here
 * again. */
static enum status publish(struct train *train) {
  timer_switch(&train->timer, TIMER_CHECKPOINT);
  const enum status status = train_published_step(train);
  timer_switch(&train->timer, TIMER_OTHER);
  return status;
}

/* What follows a step that is done. */
static enum status after_step(struct train *train, const struct train_result *result,
                              int *failures) {
  const struct options *options = train->options;
  const int64_t step = train->counts.step, last = options->steps;
  TRY(train_straggler_step(train));
  TRY(comm_agree(train->grid.world, train_report_step(train, result)));
  TRY(check_budget(train));
  if (is_due(step, options->validate_every, last)) TRY(validate(train));
  if (train_published_is_due(options, step)) TRY(publish(train));
  if (is_due(step, options->checkpoint_every, last) || result->stop_requested)
    TRY(train_saving_step(train, failures));
  CHECK(!result->stop_requested || step == last, STATUS_STOPPED,
        "stopped on request after step %" PRId64 " of %" PRId64, step, last);
  return STATUS_OK;
}

static enum status run_steps(struct train *train) {
  int failures = 0;
  progress_start(&train->progress, train->counts.step, train->options->steps);
  if (train->options->steps == 0)
    TRY(train_saving_step(train, &failures)); /* the first weights are published */
  while (train->counts.step < train->options->steps) {
    struct train_result result;
    timer_start(&train->timer);
    watchdog_begin_step(&train->watchdog, train->counts.step);
    TRY(train_step(train, &result));
    TRY(after_step(train, &result, &failures));
    timer_switch(&train->timer, TIMER_OTHER);
    for (int phase = 0; phase < TIMER_PHASES; phase++)
      train->spent[phase] += train->timer.seconds[phase];
  }
  while (failures > 0) TRY(train_saving_step(train, &failures));
  return STATUS_OK;
}

enum status train_loop(struct train *train) {
  const double bytes = (double)(train->weights.used + train->state.used) * train->grid.world->size;
  train_clock_start(&train->clock, train->stage->log, train->options, bytes);
  TRY(train_watch_start(train));
  const enum status status = run_steps(train);
  train_watch_stop(train);
  return status;
}
