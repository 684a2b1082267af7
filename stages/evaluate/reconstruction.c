#include "stages/evaluate/reconstruction.h"

#include <stdio.h>

#include "stages/evaluate/deal.h"
#include "stages/flow/solo.h"

/* The sum and then the weight of every part of the objective. */
enum { SUMS = 2 * FLOW_PARTS };

struct measurement {
  struct solo *autoencoder;
  int64_t set; /* rows of the whole set */
  struct diversity_rows block;
  int64_t first;
  double *sums; /* of the block, in the place of its first row */
};

static enum status measure(void *context, struct tape *tape) {
  const struct measurement *m = context;
  struct flow *flow = &m->autoencoder->model.flow;
  struct flow_losses losses = {{0}, {0}};
  double total[FLOW_PARTS];
  for (int part = 0; part < FLOW_PARTS; part++) total[part] = 1; /* they scale gradients only */
  int64_t *samples = arena_take(tape->records, (size_t)m->block.count * sizeof *samples);
  for (int64_t i = 0; i < m->block.count; i++) samples[i] = m->first + i;
  const struct flow_batch batch = {.count = m->block.count,
                                   .positions = m->block.positions,
                                   .tokens = m->block.tokens,
                                   .lengths = m->block.lengths,
                                   .samples = samples,
                                   .strata = samples,
                                   .stratum_count = m->set,
                                   .validation = true};
  tape->recording = tape->training = false;
  TRY(flow->kind->loss(flow, tape, &batch, total, &losses));
  for (int part = 0; part < FLOW_PARTS; part++) {
    m->sums[part] = losses.sum[part];
    m->sums[FLOW_PARTS + part] = losses.weight[part];
  }
  return STATUS_OK;
}

static enum status measure_block(void *context, struct diversity_rows block, int64_t first,
                                 double *sums) {
  struct measurement m = *(struct measurement *)context;
  m.block = block;
  m.first = first;
  m.sums = sums;
  return workspace_run(&m.autoencoder->workspace, measure, &m);
}

static enum status add_parts(struct evaluation *evaluation, const struct flow_kind *kind,
                             const struct recipe_node *node, const double *sums) {
  for (int part = 0; kind->parts[part]; part++) {
    const double weight = sums[FLOW_PARTS + part];
    if (weight <= 0) continue; /* covers no row */
    struct evaluation_model *model = evaluation_add_model(evaluation);
    CHECK(model, STATUS_ENVIRONMENT, "out of memory: the results of node '%s'", node->name);
    snprintf(model->name, sizeof model->name, "%s", node->name);
    snprintf(model->part, sizeof model->part, "%s", kind->parts[part]);
    model->value = sums[part] / weight;
  }
  return STATUS_OK;
}

enum status reconstruction_measure(struct evaluation *evaluation, struct solo *autoencoder,
                                   const struct stage *stage, const struct recipe_node *node,
                                   struct diversity_rows rows) {
  double sums[SUMS];
  struct measurement m = {.autoencoder = autoencoder, .set = rows.count};
  TRY(deal_sum(sums, SUMS, &(struct deal){stage, rows, measure_block, &m}));
  return comm_agree(stage->comm, add_parts(evaluation, autoencoder->model.flow.kind, node, sums));
}
