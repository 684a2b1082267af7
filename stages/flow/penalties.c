#include "stages/flow/penalties.h"

enum { Z_LOSS, SMOOTHING };

void penalties_weights(const struct flow *flow, const struct flow_batch *batch, double covered,
                       double *weight) {
  if (batch->validation) return;
  if (flow->options->z_loss > 0) weight[Z_LOSS] = covered;
  if (flow->options->label_smoothing > 0) weight[SMOOTHING] = covered;
}

void penalties_open(const struct flow *flow, const struct flow_batch *batch, struct tape *tape,
                    int64_t n, struct head *head, struct head_result *result) {
  const size_t bytes = (size_t)n * sizeof(double);
  if (batch->validation) return;
  head->log_sum_exp_penalty = flow->options->z_loss;
  head->smoothing = flow->options->label_smoothing;
  if (head->log_sum_exp_penalty > 0) result->penalty = arena_take_zeroed(tape->records, bytes);
  if (head->smoothing > 0) result->smoothing = arena_take_zeroed(tape->records, bytes);
}

static double add(struct flow_losses *losses, int part, const double *values, int64_t i) {
  losses->sum[part] += values[i];
  losses->weight[part] += 1;
  return values[i];
}

double penalties_add(const struct head *head, const struct head_result *result, int64_t i,
                     struct flow_losses *losses, int part) {
  double sum = 0;
  if (head->log_sum_exp_penalty > 0) sum += add(losses, part + Z_LOSS, result->penalty, i);
  if (head->smoothing > 0) sum += add(losses, part + SMOOTHING, result->smoothing, i);
  return sum;
}
