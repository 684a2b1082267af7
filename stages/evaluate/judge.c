#include "stages/evaluate/judge.h"

#include <math.h>

#include "stages/evaluate/deal.h"
#include "stages/flow/ar.h"

struct scoring {
  struct solo *judge;
  struct diversity_rows block;
  double (*values)[2]; /* of a row: negative log-likelihood, tokens scored */
};

static enum status score(void *context, struct tape *tape) {
  const struct scoring *scoring = context;
  const struct diversity_rows block = scoring->block;
  const int64_t T = block.positions;
  int64_t *none = arena_take_zeroed(tape->records, (size_t)block.count * sizeof *none);
  double *nll = arena_take_zeroed(tape->records, (size_t)(block.count * T) * sizeof *nll);
  const struct flow_batch batch = {.count = block.count,
                                   .positions = T,
                                   .tokens = block.tokens,
                                   .lengths = block.lengths,
                                   .samples = none,
                                   .strata = none,
                                   .stratum_count = 1,
                                   .validation = true};
  tape->training = false;
  TRY(ar_score(&scoring->judge->model.flow, tape, &batch, nll));
  for (int64_t i = 0; i < block.count; i++) {
    double *value = scoring->values[i];
    value[0] = 0; /* a measuring tape was here before */
    value[1] = block.lengths[i] > 1 ? block.lengths[i] - 1 : 0;
    for (int64_t t = 0; t < T; t++) value[0] += nll[i * T + t];
  }
  return STATUS_OK;
}

static enum status score_block(void *context, struct diversity_rows block, int64_t first,
                               double *values) {
  struct scoring scoring = {context, block, (double(*)[2])values};
  (void)first;
  return workspace_run(&scoring.judge->workspace, score, &scoring);
}

enum status judge_perplexity(double *perplexity, struct solo *judge, const struct stage *stage,
                             struct diversity_rows rows) {
  double sums[2];
  TRY(deal_sum(sums, 2, &(struct deal){stage, rows, score_block, judge}));
  CHECK(sums[1] > 0, STATUS_MISMATCH, "node '%s': no row has a token after its first",
        stage->node->name);
  *perplexity = exp(sums[0] / sums[1]);
  return STATUS_OK;
}
