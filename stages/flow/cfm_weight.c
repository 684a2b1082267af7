/* What a token's loss counts in the objective of categorical flows (arXiv 2604.09784, equations 44
 * to 46): the adaptive weight, its mean and limit, and a learned weight of the times.
 */
#include <math.h>

#include "stages/flow/cfm_state.h"
#include "stages/model/layers/combine.h"
#include "stages/model/layers/feedforward.h"
#include "stages/model/layers/linear.h"
#include "stages/model/layers/loss_scale.h"

enum { BALANCE_WIDTH = 32 };

void cfm_balance_declare(struct cfm_balance *balance, struct params *params) {
  scalar_embedder_declare(&balance->from, params, BALANCE_WIDTH, "balance.s_embedder");
  scalar_embedder_declare(&balance->span, params, BALANCE_WIDTH, "balance.span_embedder");
  balance->out = params_add_matrix(params, 1, BALANCE_WIDTH, PARAM_ZERO, 0, "balance.out.weight");
  balance->out->kind = PARAM_TOKENS; /* a row: nothing for Muon to orthogonalise */
  balance->bias = params_add_vector(params, 1, PARAM_ZERO, 0, "balance.out.bias");
}

static void adapt(const struct cfm_weighing *of) {
  for (int64_t i = 0; of->power > 0 && i < of->rows * of->positions; i++)
    if (of->weight[i] > 0) of->weight[i] *= (float)pow(of->distance[i] + of->constant, -of->power);
}

/* Weights are divided by the mean of the micro-shard: the same for any number of ranks. */
static void normalise(const struct options *options, const struct cfm_weighing *of) {
  const int64_t n = of->rows * of->positions;
  double sum = 0, count = 0;
  for (int64_t i = 0; i < n; i++) {
    sum += (double)of->weight[i];
    count += of->weight[i] > 0;
  }
  for (int64_t i = 0; options->cfm_weight_normalise && sum > 0 && i < n; i++)
    of->weight[i] *= (float)(count / sum);
}

static void limit(const struct options *options, const struct cfm_weighing *of) {
  const float most = (float)options->cfm_weight_clip;
  for (int64_t i = 0; most > 0 && i < of->rows * of->positions; i++)
    if (of->weight[i] > most) of->weight[i] = most;
}

static void divide(const struct cfm_weighing *of) {
  const float factor = of->total > 0 ? (float)(1 / of->total) : 0;
  for (int64_t i = 0; i < of->rows * of->positions; i++) of->weight[i] *= factor;
}

/* u[rows, 1] of the rows' times. */
static struct value *balance_of(struct tape *tape, const struct cfm_balance *balance,
                                const struct cfm_weighing *of) {
  double *span = tape_save(tape, (size_t)of->rows * sizeof *span);
  for (int64_t b = 0; span && b < of->rows; b++) span[b] = of->to[b] - of->from[b];
  struct value *sum =
      combine_add(tape, scalar_embedder_forward(tape, &balance->from, of->from, of->rows),
                  scalar_embedder_forward(tape, &balance->span, span, of->rows));
  return linear_forward(tape, feedforward_activation(tape, sum, ACTIVATION_SILU), balance->out,
                        balance->bias);
}

static void learn(const struct cfm *cfm, struct tape *tape, const struct cfm_weighing *of) {
  const size_t bytes = (size_t)(of->rows * of->positions) * sizeof(float);
  float *share = arena_take(tape->records, bytes);
  for (int64_t i = 0; i < of->rows * of->positions; i++) share[i] = of->weight[i];
  loss_scale_forward(tape, of->weight, balance_of(tape, &cfm->model.balance, of), share, of->loss,
                     of->positions);
}

void cfm_weigh(const struct flow *flow, struct tape *tape, const struct cfm_weighing *of) {
  adapt(of);
  normalise(flow->options, of);
  limit(flow->options, of);
  divide(of);
  if (flow->options->cfm_weight_learned) learn(flow->state, tape, of);
}
