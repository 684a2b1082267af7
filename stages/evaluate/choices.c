#include "stages/evaluate/choices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "monitoring/log.h"
#include "stages/evaluate/deal.h"
#include "stages/flow/ar.h"

struct scoring {
  const struct choices *choices;
  const struct stage *stage;
  struct solo *solo;
  struct diversity_rows block;
  int64_t first;
  double *values; /* [block.count] */
};

static double sum(const double *values, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < count; i++) total += values[i];
  return total;
}

/* Of tokens behind the prefix alone. */
static enum status score_exactly(const struct scoring *scoring, struct tape *tape,
                                 const struct flow_batch *batch) {
  const int64_t T = batch->positions;
  double *nll = arena_take_zeroed(tape->records, (size_t)(batch->count * T) * sizeof *nll);
  TRY(ar_score(&scoring->solo->model.flow, tape, batch, nll));
  for (int64_t i = 0; i < batch->count; i++) {
    const int64_t prefix = scoring->choices->prefix[scoring->first + i];
    scoring->values[i] = sum(nll + i * T + prefix, T - prefix);
  }
  return STATUS_OK;
}

static enum status score_bound(const struct scoring *scoring, struct tape *tape,
                               const struct flow_batch *batch) {
  const struct options *options = scoring->stage->options;
  struct flow *flow = &scoring->solo->model.flow;
  const int64_t steps = options->bound_steps.values[0], row = FLOW_BOUNDS * (steps + 1);
  double *terms = arena_take_zeroed(tape->records, (size_t)(batch->count * row) * sizeof *terms);
  const struct flow_bound_request request = {.batch = batch,
                                             .steps = steps,
                                             .draws = options->bound_draws,
                                             .times = options->bound_times,
                                             .prefix = scoring->choices->prefix + scoring->first};
  TRY(flow->kind->bound(flow, tape, &request, terms));
  for (int64_t i = 0; i < batch->count; i++)
    scoring->values[i] = sum(terms + i * row + BOUND_EMBEDDED * (steps + 1), steps + 1);
  return STATUS_OK;
}

static enum status score(void *context, struct tape *tape) {
  const struct scoring *scoring = context;
  const struct diversity_rows block = scoring->block;
  const int64_t *questions = scoring->choices->question + scoring->first;
  const struct flow_batch batch = {.count = block.count,
                                   .positions = block.positions,
                                   .tokens = block.tokens,
                                   .lengths = block.lengths,
                                   .samples = questions,
                                   .strata = questions,
                                   .stratum_count = scoring->choices->questions,
                                   .validation = true};
  tape->recording = tape->training = false;
  return scoring->solo->model.flow.kind->bound ? score_bound(scoring, tape, &batch)
                                               : score_exactly(scoring, tape, &batch);
}

static enum status score_block(void *context, struct diversity_rows block, int64_t first,
                               double *values) {
  struct scoring scoring = *(struct scoring *)context;
  scoring.block = block;
  scoring.first = first;
  scoring.values = values;
  return workspace_run(&scoring.solo->workspace, score, &scoring);
}

/* The share of questions whose right option has the lowest score, the first on ties. */
static double share_right(const struct choices *choices, const double *values, bool by_token) {
  int64_t right = 0;
  for (int64_t row = 0; row < choices->rows;) {
    int64_t best = row;
    const int64_t question = choices->question[row];
    double lowest = INFINITY;
    for (; row < choices->rows && choices->question[row] == question; row++) {
      const double tokens = (double)(choices->lengths[row] - choices->prefix[row]);
      const double value = by_token ? values[row] / tokens : values[row];
      if (value < lowest) best = row;
      lowest = fmin(lowest, value);
    }
    right += choices->correct[best];
  }
  return (double)right / (double)choices->questions;
}

static enum status add_share(struct evaluation *evaluation, const struct stage *stage,
                             const struct recipe_node *node, const char *part, double share) {
  struct evaluation_model *model = evaluation_add_model(evaluation);
  CHECK(model, STATUS_ENVIRONMENT, "out of memory: the results of node '%s'", node->name);
  snprintf(model->name, sizeof model->name, "%s", node->name);
  snprintf(model->part, sizeof model->part, "%s", part);
  model->value = share;
  log_line(stage->log, "%s: %s %.4f right", node->name, part, share);
  return STATUS_OK;
}

static enum status take_values(double **values, const struct choices *choices) {
  *values = calloc((size_t)choices->rows, sizeof **values);
  CHECK(*values, STATUS_ENVIRONMENT, "out of memory: scores of %lld options",
        (long long)choices->rows);
  return STATUS_OK;
}

enum status choices_measure(struct evaluation *evaluation, const struct choices *choices,
                            struct solo *solo, const struct stage *stage,
                            const struct recipe_node *node) {
  double *values;
  struct scoring scoring = {.choices = choices, .stage = stage, .solo = solo};
  const struct diversity_rows rows = {choices->tokens, choices->lengths, choices->rows,
                                      choices->positions};
  enum status status = comm_agree(stage->comm, take_values(&values, choices));
  if (status == STATUS_OK)
    status = deal_rows(values, 1, &(struct deal){stage, rows, score_block, &scoring});
  if (status == STATUS_OK)
    status = add_share(evaluation, stage, node, "choices", share_right(choices, values, false));
  if (status == STATUS_OK)
    status =
        add_share(evaluation, stage, node, "choices, by token", share_right(choices, values, true));
  free(values);
  return comm_agree(stage->comm, status);
}
