#include "stages/evaluate/reconstruction.h"

#include <stdio.h>

#include "stages/flow/model.h"

enum { RECORD_BYTES = 64 << 20 };

/* An autoencoder on one rank, and what it found on this rank's rows. */
struct measurement {
  const struct stage *stage;
  struct comm alone;
  struct model model;
  struct arena records, arena;
  struct flow_losses found;
};

static enum status open_model(struct measurement *m, const struct recipe_node *node) {
  const struct stage *stage = m->stage;
  char folder[STAGE_PATH_BYTES];
  CHECK(snprintf(folder, sizeof folder, "%s/%s", stage->run_folder, node->name) < STAGE_PATH_BYTES,
        STATUS_MISMATCH, "path too long: '%s'", stage->run_folder);
  TRY(arena_init(&m->records, "records", RECORD_BYTES));
  return model_open(&m->model, &(struct model_request){.recipe = stage->recipe,
                                                       .node = node,
                                                       .folder = folder,
                                                       .group = &m->alone,
                                                       .kernels = stage->options->kernels,
                                                       .precision = stage->options->precision});
}

/* Runs the objective on rows [first, first + count), which are numbered within the whole set. */
static enum status run_block(struct measurement *m, const struct kernels *kernels,
                             struct arena *arena, struct diversity_rows rows, int64_t first,
                             int64_t count) {
  struct tape tape;
  struct flow_losses losses;
  double total[FLOW_PARTS];
  const size_t mark = arena_mark(arena), records = arena_mark(&m->records);
  int32_t *lengths = arena_take(&m->records, (size_t)count * sizeof *lengths);
  int64_t *samples = arena_take(&m->records, (size_t)count * sizeof *samples);
  for (int64_t i = 0; i < count; i++) {
    lengths[i] = (int32_t)rows.positions;
    samples[i] = first + i;
  }
  for (int p = 0; p < FLOW_PARTS; p++) total[p] = 1;
  tape_init(&tape, kernels, arena, &m->records);
  tape.recording = tape.training = false;
  const struct flow_batch batch = {.count = count,
                                   .positions = rows.positions,
                                   .tokens = rows.tokens + first * rows.positions,
                                   .lengths = lengths,
                                   .samples = samples,
                                   .strata = samples,
                                   .stratum_count = rows.count,
                                   .validation = true};
  const enum status status =
      m->model.flow.kind->loss(&m->model.flow, &tape, &batch, total, &losses);
  for (int p = 0; p < FLOW_PARTS; p++) {
    m->found.sum[p] += losses.sum[p];
    m->found.weight[p] += losses.weight[p];
  }
  arena_reset(arena, mark);
  arena_reset(&m->records, records);
  return status;
}

static enum status run_mine(struct measurement *m, struct diversity_rows rows) {
  const struct comm *comm = m->stage->comm;
  const int64_t batch =
      m->stage->options->batch < rows.count ? m->stage->options->batch : rows.count;
  struct arena measuring;
  struct kernels nothing;
  arena_measure(&measuring, "reconstruction");
  TRY(kernels_open(&nothing, "measure", m->model.kernels.element));
  TRY(run_block(m, &nothing, &measuring, rows, 0, batch));
  TRY(arena_init(&m->arena, "reconstruction", measuring.peak));
  m->found = (struct flow_losses){0};
  for (int64_t first = comm->rank * batch; first < rows.count; first += comm->size * batch) {
    const int64_t left = rows.count - first;
    TRY(run_block(m, &m->model.kernels, &m->arena, rows, first, left < batch ? left : batch));
  }
  return STATUS_OK;
}

static enum status add_parts(struct evaluation *evaluation, struct measurement *m,
                             const struct recipe_node *node) {
  TRY(comm_allreduce(m->stage->comm, m->found.sum, FLOW_PARTS, DTYPE_F64, COMM_SUM));
  TRY(comm_allreduce(m->stage->comm, m->found.weight, FLOW_PARTS, DTYPE_F64, COMM_SUM));
  const char *const *parts = m->model.flow.kind->parts;
  for (int p = 0; parts[p]; p++) {
    struct evaluation_model *model = evaluation_add_model(evaluation);
    CHECK(model, STATUS_ENVIRONMENT, "out of memory: the results of node '%s'", node->name);
    snprintf(model->name, sizeof model->name, "%s", node->name);
    snprintf(model->part, sizeof model->part, "%s", parts[p]);
    model->value = m->found.weight[p] > 0 ? m->found.sum[p] / m->found.weight[p] : 0;
  }
  return STATUS_OK;
}

enum status reconstruction_measure(struct evaluation *evaluation, const struct stage *stage,
                                   const struct recipe_node *node, struct diversity_rows rows) {
  struct measurement m = {.stage = stage};
  TRY(comm_split(&m.alone, stage->comm, stage->comm->rank));
  enum status status = comm_agree(stage->comm, open_model(&m, node));
  if (status == STATUS_OK) status = comm_agree(stage->comm, run_mine(&m, rows));
  if (status == STATUS_OK) status = add_parts(evaluation, &m, node);
  arena_free(&m.arena);
  model_close(&m.model);
  arena_free(&m.records);
  comm_free(&m.alone);
  return status;
}
