#include "stages/train/train_step.h"

#include <inttypes.h>
#include <math.h>

#include "stages/stage_end.h"
#include "stages/train/schedule.h"
#include "stages/train/train_again.h"
#include "stages/train/train_exchange.h"
#include "stages/train/train_fetch.h"
#include "stages/train/train_teacher.h"

/* One micro step on a tape. */
struct micro {
  struct train *train;
  const struct train_losses *batch_losses;
  struct flow_batch batch;
  struct flow_losses losses;
};

static enum status use_tape(void *context, struct tape *tape) {
  struct micro *micro = context;
  struct train *train = micro->train;
  const bool real = !arena_is_measuring(tape->arena);
  micro->losses = (struct flow_losses){{0}, {0}};
  tape->helper = real ? &train->helper : NULL;
  timer_switch(&train->timer, TIMER_FORWARD);
  TRY(train->flow.kind->loss(&train->flow, tape, &micro->batch, micro->batch_losses->total,
                             &micro->losses));
  timer_switch(&train->timer, TIMER_BACKWARD);
  tape->open = real ? train_exchange_open : NULL;
  TRY(tape_backward(tape, real ? train_exchange_ready : NULL, train));
  timer_switch(&train->timer, TIMER_OTHER);
  return STATUS_OK;
}

static enum status micro_step(struct train *train, int64_t j, enum flow_rows rows,
                              struct train_losses *losses) {
  timer_switch(&train->timer, TIMER_EMBED);
  TRY(train_data_embed(&train->data, j));
  timer_switch(&train->timer, TIMER_OTHER);
  struct micro micro = {
      .train = train, .batch_losses = losses, .batch = train_data_micro(&train->data, j)};
  micro.batch.rows = rows;
  train_exchange_begin(train, j);
  TRY(workspace_run(&train->workspace, use_tape, &micro));
  timer_switch(&train->timer, TIMER_REDUCE);
  TRY(train_exchange_end(train));
  train_losses_keep(train, j, &micro.losses, rows == FLOW_JUMP_ROWS);
  timer_switch(&train->timer, TIMER_OTHER);
  return STATUS_OK;
}

static enum status run_rows(struct train *train, enum flow_rows rows, struct train_losses *losses) {
  for (int64_t j = 0; j < grid_micro_steps(&train->grid); j++)
    TRY(micro_step(train, j, rows, losses));
  timer_switch(&train->timer, TIMER_REDUCE);
  return STATUS_OK;
}

/* The gradients of the diagonal by themselves, then those of the jumps. */
static enum status run_apart(struct train *train, struct train_losses *losses) {
  TRY(run_rows(train, FLOW_DIAGONAL_ROWS, losses));
  TRY(train_exchange_keep(train));
  return run_rows(train, FLOW_JUMP_ROWS, losses);
}

static enum status compute(struct train *train, struct train_result *result) {
  TRY(train_losses_weigh(train, &train->data, &result->losses));
  if (train_exchange_keeps(train))
    TRY(run_apart(train, &result->losses));
  else
    TRY(run_rows(train, FLOW_ALL_ROWS, &result->losses));
  TRY(train_losses_sum(train, &result->losses));
  result->loss = train_losses_objective(&result->losses, train->flow.kind);
  return train_exchange_finish(train, &result->gradient_norm, &result->cosine);
}

/* What fails in the middle of a step fails on this rank only, as far as it can know. */
static enum status alone(const struct train *train, enum status status) {
  return stage_end_alone(train->grid.world, train->counts.step, status);
}

/* The words that all ranks decide by. */
enum { WORD_STOP, WORD_NOT_FINITE, WORD_WEIGHTS, WORDS };

static bool is_time_over(struct train *train) {
  return train->grid.world->rank == 0 && train_clock_is_over(&train->clock, train->stage->log);
}

static enum status decide(struct train *train, struct train_result *result, bool *sound) {
  int64_t words[WORDS] = {
      [WORD_STOP] = stage_stop_requested() || is_time_over(train),
      [WORD_NOT_FINITE] = !health_finite(result->loss, result->gradient_norm),
      [WORD_WEIGHTS] = train->weights_not_finite,
  };
  TRY(comm_allreduce(train->grid.world, words, WORDS, DTYPE_I64, COMM_MAX));
  CHECK(!words[WORD_WEIGHTS], STATUS_NUMERIC,
        "step %" PRId64 ": an update left weights that are not finite; lower learning_rate (%g)",
        train->counts.step, train->options->learning_rate);
  result->stop_requested = words[WORD_STOP] != 0;
  *sound = words[WORD_NOT_FINITE] == 0;
  return STATUS_OK;
}

static const char *find_culprit(const struct train *train, const struct train_result *result) {
  for (int64_t part = 0; train->flow.kind->parts[part]; part++)
    if (!isfinite(result->losses.sum[part])) return train->flow.kind->parts[part];
  for (int64_t i = train->trained_count - 1; i >= 0; i--)
    if (!isfinite(train->squares[i])) return train->trained[i]->name;
  return "gradient norm";
}

static double clip_scale(const struct options *options, double norm) {
  return options->clip > 0 && norm > options->clip ? options->clip / norm : 1;
}

static enum status update_tensor(struct train *train, int64_t i,
                                 const struct optimizer_update *update) {
  bool finite = true;
  if (!train->optimizer.tensors[i].owned) return optimizer_help(&train->optimizer, i);
  const struct gradients_sum gradient = gradients_sum(train->gradients, i);
  TRY(optimizer_apply(&train->optimizer, i, &gradient, update, &finite));
  if (!finite) train->weights_not_finite = true;
  return STATUS_OK;
}

/* First what all ranks work on, then what each has to do alone. */
static enum status update_owned(struct train *train, const struct train_result *result) {
  const struct optimizer_update update = {
      .rate = result->rate, .gradient_scale = clip_scale(train->options, result->gradient_norm)};
  optimizer_begin(&train->optimizer);
  for (int64_t i = 0; i < train->trained_count; i++)
    if (train->together[i]) TRY(update_tensor(train, i, &update));
  for (int64_t i = 0; i < train->trained_count; i++)
    if (!train->together[i] && train->optimizer.tensors[i].owned)
      TRY(update_tensor(train, i, &update));
  return STATUS_OK;
}

static enum status update(struct train *train, const struct train_result *result) {
  timer_switch(&train->timer, TIMER_OPTIMIZER);
  TRY(update_owned(train, result));
  timer_switch(&train->timer, TIMER_REDUCE);
  for (int64_t i = 0; i < train->trained_count; i++) {
    const struct param *param = train->trained[i];
    const size_t each = dtype_bytes(param_dtype(param, train->kernels.element));
    if (!param->derived && param->place == PARAM_EVERYWHERE)
      TRY(zero_share(&train->zero, i, param->data, param->row_count * param->cols * (int64_t)each));
  }
  TRY(train_teacher_follow(train, train->counts.step + 1));
  TRY(train_fetch_again(train));
  timer_switch(&train->timer, TIMER_OTHER);
  return train->flow.kind->prepare ? train->flow.kind->prepare(&train->flow) : STATUS_OK;
}

/* Whether numbers that are not finite come back: the step goes on when they do not. Of steps in a
 * row, the first one is tried. */
static enum status again(struct train *train, struct train_result *result, bool *sound) {
  if (train->counts.skipped_in_row > 0) return STATUS_OK;
  const char *culprit = find_culprit(train, result);
  const uint64_t first = train_again_hash(train);
  const bool stop_requested = result->stop_requested;
  TRY(alone(train, compute(train, result)));
  TRY(decide(train, result, sound));
  result->stop_requested |= stop_requested;
  if (*sound) result->vanished = culprit;
  return *sound ? train_again_report(train, culprit, first) : STATUS_OK;
}

/* A step that changes no weights may end a round all the same. */
static enum status skip(struct train *train) {
  TRY(train_teacher_follow(train, train->counts.step + 1));
  return train_fetch_again(train);
}

/* Tokens and sample hash of the whole batch: sums of integers, exact in any order. The hash is
 * added modulo 2^64 as two halves. */
static enum status count_rows(struct train *train, struct train_result *result) {
  const uint64_t hash = train->data.batch->hash;
  int64_t sums[3] = {train_data_tokens(&train->data), (int64_t)(hash & 0xffffffffu),
                     (int64_t)(hash >> 32)};
  TRY(comm_allreduce(train->grid.world, sums, 3, DTYPE_I64, COMM_SUM));
  result->tokens = sums[0];
  result->samples = (uint64_t)sums[1] + ((uint64_t)sums[2] << 32);
  return STATUS_OK;
}

static void count_step(struct train *train, const struct train_result *result) {
  train->counts.step++;
  train->counts.tokens += result->tokens;
  train->counts.skipped += result->culprit != NULL;
  train->counts.skipped_in_row = result->culprit ? train->counts.skipped_in_row + 1 : 0;
  if (!result->culprit) health_accept(&train->health, result->loss);
}

enum status train_step(struct train *train, struct train_result *result) {
  *result = (struct train_result){.rate = schedule_rate(train->options, train->counts.step)};
  const double exposed = grid_exposed_seconds(&train->grid);
  bool sound = false;
  train->flow.trained = train->counts.step;
  timer_switch(&train->timer, TIMER_DATA);
  TRY(comm_agree(train->grid.world, train_data_load(&train->data, train->counts.step)));
  timer_switch(&train->timer, TIMER_OTHER);
  TRY(count_rows(train, result));
  TRY(alone(train, compute(train, result)));
  TRY(decide(train, result, &sound));
  if (!sound) TRY(again(train, result, &sound));
  TRY(alone(train, sound ? update(train, result) : skip(train)));
  if (sound) result->deviation = health_deviation(&train->health, result->loss);
  if (!sound) result->culprit = find_culprit(train, result);
  count_step(train, result);
  result->exposed = grid_exposed_seconds(&train->grid) - exposed;
  return STATUS_OK;
}
