#include "stages/evaluate/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/flow/ar.h"

enum { RECORD_BYTES = 64 << 20 };

static enum status open_model(struct judge *judge, const struct recipe_node *node) {
  const struct stage *stage = judge->stage;
  char folder[STAGE_PATH_BYTES];
  CHECK(snprintf(folder, sizeof folder, "%s/%s", stage->run_folder, node->name) < STAGE_PATH_BYTES,
        STATUS_MISMATCH, "path too long: '%s'", stage->run_folder);
  TRY(arena_init(&judge->records, "records", RECORD_BYTES));
  TRY(model_open(&judge->model, &(struct model_request){.recipe = stage->recipe,
                                                        .node = node,
                                                        .folder = folder,
                                                        .group = &judge->alone,
                                                        .kernels = stage->options->kernels,
                                                        .precision = stage->options->precision}));
  CHECK(strcmp(judge->model.flow.kind->name, "ar") == 0, STATUS_MISMATCH,
        "node '%s': the judge '%s' was trained with method %s; a judge is a pretrain node with "
        "method: ar",
        stage->node->name, node->name, judge->model.flow.kind->name);
  return STATUS_OK;
}

enum status judge_open(struct judge *judge, const struct stage *stage,
                       const struct recipe_node *node) {
  *judge = (struct judge){.stage = stage};
  TRY(comm_split(&judge->alone, stage->comm, stage->comm->rank));
  const enum status status = comm_agree(stage->comm, open_model(judge, node));
  if (status != STATUS_OK) judge_close(judge);
  TRY(status);
  return STATUS_OK;
}

void judge_close(struct judge *judge) {
  model_close(&judge->model);
  arena_free(&judge->records);
  comm_free(&judge->alone);
}

/* Scores one block of rows on this rank: nll[i] = sum over the tokens of row i. */
static enum status score_block(struct judge *judge, const struct kernels *kernels,
                               struct arena *arena, struct diversity_rows block, double *nll) {
  struct tape tape;
  const size_t mark = arena_mark(arena), records = arena_mark(&judge->records);
  const size_t count = (size_t)block.count;
  int32_t *lengths = arena_take(&judge->records, count * sizeof *lengths);
  int64_t *samples = arena_take_zeroed(&judge->records, count * sizeof *samples);
  double *tokens =
      arena_take_zeroed(&judge->records, count * (size_t)block.positions * sizeof *tokens);
  for (int64_t i = 0; i < block.count; i++) lengths[i] = (int32_t)block.positions;
  tape_init(&tape, kernels, arena, &judge->records);
  tape.recording = tape.training = false;
  const struct flow_batch batch = {.count = block.count,
                                   .positions = block.positions,
                                   .tokens = block.tokens,
                                   .lengths = lengths,
                                   .samples = samples,
                                   .strata = samples,
                                   .stratum_count = 1,
                                   .validation = true};
  const enum status status = ar_score(&judge->model.flow, &tape, &batch, tokens);
  for (int64_t i = 0; i < block.count; i++) {
    nll[i] = 0;
    for (int64_t t = 0; t < block.positions; t++) nll[i] += tokens[i * block.positions + t];
  }
  arena_reset(arena, mark);
  arena_reset(&judge->records, records);
  return status;
}

static struct diversity_rows block_of(struct diversity_rows rows, int64_t first, int64_t most) {
  const int64_t left = rows.count - first;
  return (struct diversity_rows){rows.tokens + first * rows.positions, left < most ? left : most,
                                 rows.positions};
}

/* Memory for scoring one block, found by a measuring tape. */
static enum status measure(struct judge *judge, struct arena *arena, struct diversity_rows rows,
                           double *nll) {
  struct arena measuring;
  struct kernels nothing;
  arena_measure(&measuring, "judge");
  TRY(kernels_open(&nothing, "measure", judge->model.kernels.element));
  TRY(score_block(judge, &nothing, &measuring, block_of(rows, 0, judge->stage->options->batch),
                  nll));
  return arena_init(arena, "judge", measuring.peak);
}

static enum status score_mine(struct judge *judge, struct diversity_rows rows, double *nll) {
  const struct comm *comm = judge->stage->comm;
  const int64_t batch = judge->stage->options->batch;
  struct arena arena = {0};
  enum status status = measure(judge, &arena, rows, nll);
  memset(nll, 0, (size_t)rows.count * sizeof *nll);
  for (int64_t first = comm->rank * batch; first < rows.count && status == STATUS_OK;
       first += comm->size * batch)
    status = score_block(judge, &judge->model.kernels, &arena, block_of(rows, first, batch),
                         nll + first);
  arena_free(&arena);
  return status;
}

enum status judge_perplexity(double *perplexity, struct judge *judge, struct diversity_rows rows) {
  double *nll = calloc((size_t)rows.count, sizeof *nll), sum = 0;
  enum status status = nll ? STATUS_OK
                           : error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                                         "out of memory: %lld scores", (long long)rows.count);
  if (status == STATUS_OK) status = score_mine(judge, rows, nll);
  status = comm_agree(judge->stage->comm, status);
  if (status == STATUS_OK) /* each row has one non-zero contribution: exact in any order */
    status = comm_allreduce(judge->stage->comm, nll, rows.count, DTYPE_F64, COMM_SUM);
  for (int64_t i = 0; status == STATUS_OK && i < rows.count; i++) sum += nll[i];
  *perplexity = exp(sum / (double)(rows.count * (rows.positions - 1)));
  free(nll);
  return status;
}
