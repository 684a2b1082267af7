#include "stages/train/train_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "monitoring/cost.h"
#include "monitoring/log.h"
#include "pipeline/artefact/manifest.h"
#include "pipeline/base/text.h"
#include "stages/train/train_exchange.h"

static struct log *log_of(const struct train *train) {
  return train->stage->log;
}

/* The largest table is the head; the others are looked up in. */
static double flop_per_token(const struct train *train) {
  int64_t matrices = 0, head = 0;
  for (int64_t i = 0; i < train->params.count; i++) {
    const struct param *param = train->params.items[i];
    if (param->derived) continue;
    if (param->kind == PARAM_MATRIX) matrices += param_count(param);
    if (param->kind == PARAM_TABLE && param_count(param) > head) head = param_count(param);
  }
  const struct options *shape = &train->shape->options;
  if (train->flow.kind->head_share)
    head = (int64_t)((double)head * train->flow.kind->head_share(&train->flow));
  return cost_training_flop(&(struct cost_model){.matrix_elements = matrices + head,
                                                 .depth = shape->depth,
                                                 .width = shape->width,
                                                 .positions = train->facts.positions});
}

static enum status measure_use(void *context, struct tape *tape) {
  struct train *train = context;
  const struct flow_batch batch = train_data_micro(&train->data, 0);
  double totals[FLOW_PARTS];
  for (int part = 0; part < FLOW_PARTS; part++) totals[part] = 1;
  struct flow_losses losses = {{0}, {0}};
  TRY(train->flow.kind->loss(&train->flow, tape, &batch, totals, &losses));
  return tape_backward(tape, NULL, NULL);
}

/* The accounts of a rank; those that are zero are not there. */
enum { ENCODER_ACCOUNT = 7, ACCOUNTS = 9 };

struct account {
  const char *name;
  size_t bytes;
};

static size_t online_bytes(const struct train *train) {
  const struct latents *online = &train->online;
  const struct encoder *encoder = &online->encoder;
  return online->arena.peak + encoder->weights.peak + encoder->workspace.data.peak;
}

static void list_accounts(struct account accounts[ACCOUNTS], const struct train *train) {
  const struct arena *scratch = &train->optimizer.scratch;
  const struct account all[ACCOUNTS] = {
      {"weights", train->weights.peak},
      {"fetched weights", train->fetched.peak},
      {"optimizer", train->state.peak},
      {"optimizer scratch", scratch->base ? scratch->size : 0},
      {"gradients", train->sums.peak},
      {"working gradients", train->gradients ? gradients_working_bytes(train->gradients) : 0},
      {"activations", train->workspace.data.peak},
      [ENCODER_ACCOUNT] = {"encoder", online_bytes(train)},
      {"declarations", train->declarations.peak},
  };
  memcpy(accounts, all, sizeof all);
}

/* Before the first step, when nothing was computed yet; `activations` and what the encoder needs
 * were measured. */
static void say_memory(const struct train *train, size_t activations, size_t encoder) {
  struct account accounts[ACCOUNTS];
  char line[512] = "", size[24];
  int length = 0;
  list_accounts(accounts, train);
  accounts[ENCODER_ACCOUNT].bytes = encoder;
  for (int i = 0; i < ACCOUNTS; i++)
    if (accounts[i].bytes > 0 && length < (int)sizeof line)
      length += snprintf(line + length, sizeof line - (size_t)length, "%s %s, ", accounts[i].name,
                         text_size(size, accounts[i].bytes));
  log_line(log_of(train), "memory of rank 0: %sactivations %s", line, text_size(size, activations));
}

enum status train_report_start(struct train *train) {
  const struct options *options = train->options;
  char parameters[PROGRESS_COUNT_BYTES], flop[PROGRESS_COUNT_BYTES];
  size_t activations = 0, encoder = 0;
  log_line(log_of(train),
           "%s: %s parameters, vocabulary %" PRId64 ", rows of %" PRId64 " tokens, %s %s",
           train->flow.kind->name, progress_count(parameters, (double)params_count(&train->params)),
           train->facts.vocabulary, train->facts.positions, dtype_name(train->kernels.element),
           train->kernels.name);
  log_line(log_of(train),
           "%" PRId64 " steps of %" PRId64 " rows in %" PRId64 " micro-shards on %d ranks, "
           "%s sums, %sFLOP a token",
           options->steps, options->batch, options->micro_shards, train->grid.world->size,
           options_choice(options, OPTION_reductions), progress_count(flop, flop_per_token(train)));
  int64_t together = 0;
  for (int64_t i = 0; i < train->trained_count; i++) together += train->together[i];
  if (together > 0)
    log_line(log_of(train), "all ranks work together on %" PRId64 " matri%s, by PBLAS", together,
             together == 1 ? "x" : "ces");
  if (options->reductions == REDUCTIONS_FAST)
    log_warn(log_of(train), "fast sums: losses depend on the number of ranks in their last bits");
  TRY(comm_agree(train->grid.world, train_data_load(&train->data, train->counts.step)));
  TRY(workspace_measure(&train->workspace, &activations, measure_use, train));
  if (train->online.values) TRY(latents_bytes(&encoder, &train->online));
  say_memory(train, activations, encoder);
  return STATUS_OK;
}

static double tokens_per_second(const struct train *train, const struct train_result *result) {
  const double seconds = timer_total(&train->timer);
  return seconds > 0 ? (double)result->tokens / seconds : 0;
}

/* What exchanges cost, a mean over the steps since the start, and the rank that stands out. */
static const char *describe_ranks(char out[256], const struct train *train) {
  double seconds = timer_total(&train->timer);
  const double steps = (double)(train->counts.step - train->progress.first);
  for (int phase = 0; phase < TIMER_PHASES; phase++) seconds += train->spent[phase];
  if (train->grid.world->size == 1 || steps <= 0 || seconds <= 0) return "";
  snprintf(out, 256, "  exchanges %.3g ms not hidden by work (%.1f %%)%s%s",
           1e3 * train->exposed / steps, 100 * train->exposed / seconds,
           *train->slowest ? "  " : "", train->slowest);
  return out;
}

static void say_step(struct train *train, const struct train_result *result) {
  char left[PROGRESS_TIME_BYTES], rate[PROGRESS_COUNT_BYTES], ranks[256];
  const double window = meter_mean(&train->speed);
  log_line(log_of(train),
           "step %" PRId64 "/%" PRId64 "  loss %.4f  lr %.2e  norm %.3g  %s tokens/s  %s left%s",
           train->counts.step, train->options->steps, result->loss, result->rate,
           result->gradient_norm, progress_count(rate, window),
           progress_time(left, progress_left(&train->progress, train->counts.step)),
           describe_ranks(ranks, train));
  meter_reset(&train->speed);
}

bool train_report_due(const struct train *train) {
  const int64_t step = train->counts.step;
  return step % train->options->log_every == 0 || step == train->options->steps || step == 1;
}

static void say_skip(struct train *train, const struct train_result *result) {
  log_warn(log_of(train),
           "step %" PRId64 " changed nothing: loss %g, gradient norm %g; not finite first: %s "
           "(samples %016" PRIx64 ")",
           train->counts.step, result->loss, result->gradient_norm, result->culprit,
           result->samples);
}

static void record_seconds(struct train *train, const struct train_result *result) {
  metric_file_open_group(&train->metrics, "seconds");
  for (int phase = 0; phase < TIMER_PHASES; phase++)
    metric_file_real(&train->metrics, timer_phase_name((enum timer_phase)phase),
                     train->timer.seconds[phase]);
  metric_file_real(&train->metrics, "exposed_communication", result->exposed);
  metric_file_close_group(&train->metrics);
}

static enum status record_step(struct train *train, const struct train_result *result) {
  struct metric_file *metrics = &train->metrics;
  char samples[17];
  snprintf(samples, sizeof samples, "%016" PRIx64, result->samples);
  metric_file_begin(metrics, "step", train->counts.step);
  train_losses_record(&result->losses, train->flow.kind, metrics);
  metric_file_real(metrics, "learning_rate", result->rate);
  metric_file_real(metrics, "gradient_norm", result->gradient_norm);
  if (train_exchange_keeps(train)) metric_file_real(metrics, "cosine", result->cosine);
  metric_file_integer(metrics, "tokens", train->counts.tokens);
  metric_file_real(metrics, "tokens_per_second", tokens_per_second(train, result));
  metric_file_text(metrics, "samples", samples);
  if (result->culprit) metric_file_text(metrics, "skipped", result->culprit);
  if (result->vanished) metric_file_text(metrics, "vanished", result->vanished);
  record_seconds(train, result);
  return metric_file_end(metrics);
}

enum status train_report_step(struct train *train, const struct train_result *result) {
  const int64_t step = train->counts.step;
  timer_switch(&train->timer, TIMER_OTHER);
  meter_add(&train->speed, (double)result->tokens, timer_total(&train->timer));
  train->exposed += result->exposed;
  if (result->culprit) say_skip(train, result);
  if (result->deviation > HEALTH_SPIKE)
    log_warn(log_of(train), "step %" PRId64 ": the loss %.4f stands out by %.0f median deviations",
             step, result->loss, result->deviation);
  if (train_report_due(train)) say_step(train, result);
  return record_step(train, result);
}

enum status train_report_validation(struct train *train, const struct train_losses *losses) {
  const struct flow_kind *kind = train->flow.kind;
  char text[256] = "";
  int length = 0;
  for (int64_t part = 0; kind->parts[part] && length < (int)sizeof text; part++)
    if (losses->total[part] > 0)
      length += snprintf(text + length, sizeof text - (size_t)length, "  %s %.4f",
                         kind->parts[part], train_losses_part(losses, part));
  log_line(log_of(train), "step %" PRId64 "  held-out loss %.4f %s", train->counts.step,
           train_losses_objective(losses, kind), text);
  metric_file_begin(&train->metrics, "validation", train->counts.step);
  train_losses_record(losses, kind, &train->metrics);
  metric_file_integer(&train->metrics, "rows", train->held_out.order.rows);
  return metric_file_end(&train->metrics);
}

static int64_t peak_resident_bytes(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

static void record_peaks(struct train *train) {
  struct account accounts[ACCOUNTS];
  list_accounts(accounts, train);
  metric_file_open_group(&train->metrics, "peak_bytes");
  for (int i = 0; i < ACCOUNTS; i++)
    if (accounts[i].bytes > 0)
      metric_file_integer(&train->metrics, accounts[i].name, (int64_t)accounts[i].bytes);
  metric_file_integer(&train->metrics, "resident", peak_resident_bytes());
  metric_file_close_group(&train->metrics);
}

static enum status add_timings(const struct train *train) {
  if (train->grid.world->rank != 0) return STATUS_OK;
  struct scalars *timings = &train->stage->manifest->timings;
  TRY(scalars_set_real(timings, "data_p99", loader_waits(train->data.loader).p99_seconds));
  for (int phase = 0; phase < TIMER_PHASES; phase++)
    TRY(scalars_set_real(timings, timer_phase_name((enum timer_phase)phase), train->spent[phase]));
  return STATUS_OK;
}

/* What the promise of the same bits on any number of ranks costs on this one. */
static void say_order(struct train *train, double spent) {
  const double seconds = gradients_order_seconds(train->gradients);
  const double steps = (double)(train->counts.step - train->progress.first);
  if (!train->grid.canonical || steps <= 0 || spent <= 0) return;
  log_line(log_of(train), "canonical sums: %.3g ms a step that fast sums would not take, %.1f %%",
           1e3 * seconds / steps, 100 * seconds / spent);
  metric_file_real(&train->metrics, "canonical_seconds", seconds);
}

enum status train_report_end(struct train *train, const char *hash) {
  char seconds[PROGRESS_TIME_BYTES], bytes[24];
  const double spent = timer_now() - train->progress.started;
  log_line(log_of(train), "weights hash %s  (%" PRId64 " steps, %" PRId64 " skipped; %s; peak %s)",
           hash, train->counts.step, train->counts.skipped, progress_time(seconds, spent),
           text_size(bytes, (uint64_t)peak_resident_bytes()));
  metric_file_begin(&train->metrics, "end", train->counts.step);
  metric_file_text(&train->metrics, "weights", hash);
  metric_file_integer(&train->metrics, "tokens", train->counts.tokens);
  metric_file_real(&train->metrics, "seconds", spent);
  metric_file_integer(&train->metrics, "parameters", params_count(&train->params));
  metric_file_real(&train->metrics, "flop_per_token", flop_per_token(train));
  say_order(train, spent);
  record_peaks(train);
  TRY(metric_file_end(&train->metrics));
  TRY(add_timings(train));
  return metric_file_sync(&train->metrics);
}
