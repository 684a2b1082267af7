#include "stages/evaluate/likelihood.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "monitoring/log.h"
#include "stages/evaluate/deal.h"

static const char *const form_names[FLOW_BOUNDS] = {"gaussian", "jensen", "embedded", "mixture"};

struct likelihood {
  struct evaluation *evaluation;
  struct solo *solo;
  const struct stage *stage;
  const struct recipe_node *node;
  struct diversity_rows rows, block;
  double tokens_per_byte;
  int64_t steps, first;
  double *terms; /* [rows][FLOW_BOUNDS][steps + 1] */
  double *block_terms;
};

static bool continuous(const struct likelihood *likelihood) {
  return likelihood->stage->options->bound_times == BOUND_TIMES_CONTINUOUS;
}

static enum status bound(void *context, struct tape *tape) {
  const struct likelihood *likelihood = context;
  const struct options *options = likelihood->stage->options;
  const struct diversity_rows block = likelihood->block;
  struct flow *flow = &likelihood->solo->model.flow;
  int64_t *samples = arena_take(tape->records, (size_t)block.count * sizeof *samples);
  for (int64_t i = 0; i < block.count; i++) samples[i] = likelihood->first + i;
  const struct flow_batch batch = {.count = block.count,
                                   .positions = block.positions,
                                   .tokens = block.tokens,
                                   .lengths = block.lengths,
                                   .samples = samples,
                                   .strata = samples,
                                   .stratum_count = likelihood->rows.count,
                                   .validation = true};
  tape->recording = tape->training = false;
  return flow->kind->bound(flow, tape,
                           &(struct flow_bound_request){.batch = &batch,
                                                        .steps = likelihood->steps,
                                                        .draws = options->bound_draws,
                                                        .times = options->bound_times,
                                                        .mixture = options->bound_mixture},
                           likelihood->block_terms);
}

static enum status bound_block(void *context, struct diversity_rows block, int64_t first,
                               double *values) {
  struct likelihood likelihood = *(struct likelihood *)context;
  likelihood.block = block;
  likelihood.first = first;
  likelihood.block_terms = values;
  return workspace_run(&likelihood.solo->workspace, bound, &likelihood);
}

static const double *terms_of(const struct likelihood *likelihood, int64_t row, int form) {
  return likelihood->terms + (row * FLOW_BOUNDS + form) * (likelihood->steps + 1);
}

/* The form of step k that is lower over all rows. */
static int better(const struct likelihood *likelihood, int64_t k) {
  double sums[FLOW_BOUNDS] = {0};
  for (int64_t row = 0; row < likelihood->rows.count; row++)
    for (int form = 0; form < FLOW_BOUNDS; form++) sums[form] += terms_of(likelihood, row, form)[k];
  return sums[BOUND_JENSEN] < sums[BOUND_GAUSSIAN] ? BOUND_JENSEN : BOUND_GAUSSIAN;
}

/* Which form every step takes, into choice[steps + 1]. */
static void choose(const struct likelihood *likelihood, int *choice, int form) {
  for (int64_t k = 0; k <= likelihood->steps; k++)
    choice[k] = form < FLOW_BOUNDS ? form : better(likelihood, k);
}

static double nats_of(const struct likelihood *likelihood, int64_t row, const int *choice) {
  double nats = 0;
  for (int64_t k = 0; k <= likelihood->steps; k++) nats += terms_of(likelihood, row, choice[k])[k];
  return nats;
}

/* The ratio of sums over rows, and its standard error by the deviations from it. */
static void summarise(const struct likelihood *likelihood, const int *choice,
                      struct evaluation_bound *bound) {
  const struct diversity_rows *rows = &likelihood->rows;
  double sum = 0, squares = 0;
  bound->rows = rows->count;
  for (int64_t row = 0; row < rows->count; row++) {
    sum += nats_of(likelihood, row, choice);
    bound->tokens += rows->lengths[row];
  }
  bound->nats = sum / (double)bound->tokens;
  for (int64_t row = 0; row < rows->count; row++) {
    const double expected = bound->nats * rows->lengths[row];
    const double deviation = nats_of(likelihood, row, choice) - expected;
    squares += deviation * deviation;
  }
  const double n = (double)rows->count;
  bound->error = n > 1 ? sqrt(squares * n / (n - 1)) / (double)bound->tokens : (double)NAN;
}

static enum status add_form(const struct likelihood *likelihood, int form, const char *name,
                            int *choice) {
  struct evaluation_bound *bound = evaluation_add_bound(likelihood->evaluation);
  CHECK(bound, STATUS_ENVIRONMENT, "out of memory: the bounds of node '%s'",
        likelihood->node->name);
  snprintf(bound->name, sizeof bound->name, "%s", likelihood->node->name);
  snprintf(bound->form, sizeof bound->form, "%s", name);
  bound->steps = likelihood->steps;
  bound->continuous = continuous(likelihood);
  bound->information = likelihood->stage->options->bound_times == BOUND_TIMES_INFORMATION;
  bound->tokens_per_byte = likelihood->tokens_per_byte;
  choose(likelihood, choice, form);
  summarise(likelihood, choice, bound);
  CHECK(bound->tokens > 0, STATUS_MISMATCH, "node '%s': held-out rows have no tokens",
        likelihood->stage->node->name);
  log_line(likelihood->stage->log, "%s: -log p <= %.4f +- %.4f nats a token (%s, %lld steps)",
           bound->name, bound->nats, bound->error, name, (long long)bound->steps);
  return STATUS_OK;
}

/* Where times are continuous only the forms that are integrals hold. */
static enum status add_forms(const struct likelihood *likelihood, int *choice) {
  const bool grid = !continuous(likelihood);
  for (int form = 0; form < FLOW_BOUNDS; form++) {
    const bool integral = form == BOUND_GAUSSIAN || form == BOUND_EMBEDDED;
    const bool asked = form != BOUND_MIXTURE || likelihood->stage->options->bound_mixture;
    if (asked && (grid || integral)) TRY(add_form(likelihood, form, form_names[form], choice));
  }
  return grid ? add_form(likelihood, FLOW_BOUNDS, "best", choice) : STATUS_OK;
}

static enum status take_memory(struct likelihood *likelihood, int **choice) {
  const int64_t places = likelihood->steps + 1, rows = likelihood->rows.count;
  likelihood->terms = calloc((size_t)(rows * FLOW_BOUNDS * places), sizeof(double));
  *choice = calloc((size_t)places, sizeof **choice);
  CHECK(likelihood->terms && *choice, STATUS_ENVIRONMENT,
        "out of memory: bounds of %lld rows in %lld steps", (long long)rows, (long long)places);
  return STATUS_OK;
}

static enum status measure_steps(struct likelihood *likelihood) {
  const struct stage *stage = likelihood->stage;
  int *choice = NULL;
  enum status status = comm_agree(stage->comm, take_memory(likelihood, &choice));
  if (status == STATUS_OK)
    status = deal_rows(likelihood->terms, FLOW_BOUNDS * (likelihood->steps + 1),
                       &(struct deal){stage, likelihood->rows, bound_block, likelihood});
  if (status == STATUS_OK) status = comm_agree(stage->comm, add_forms(likelihood, choice));
  free(likelihood->terms);
  free(choice);
  return status;
}

enum status likelihood_measure(struct evaluation *evaluation, struct solo *solo,
                               const struct stage *stage, const struct recipe_node *node,
                               struct diversity_rows rows, double tokens_per_byte) {
  struct likelihood likelihood = {.evaluation = evaluation,
                                  .solo = solo,
                                  .stage = stage,
                                  .node = node,
                                  .rows = rows,
                                  .tokens_per_byte = tokens_per_byte};
  const struct option_integers *steps = &stage->options->bound_steps;
  if (rows.count > stage->options->bound_rows) likelihood.rows.count = stage->options->bound_rows;
  for (size_t i = 0; i < steps->count; i++) {
    likelihood.steps = steps->values[i];
    TRY(measure_steps(&likelihood));
  }
  return STATUS_OK;
}
