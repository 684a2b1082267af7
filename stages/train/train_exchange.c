#include "stages/train/train_exchange.h"

#include <string.h>

static int64_t member_count(const struct train *train, const struct param *param) {
  return param->sliced ? train->grid.group.size : 1;
}

void train_exchange_begin(struct train *train, int64_t j) {
  gradients_begin(train->gradients, j);
  for (int64_t i = 0; i < train->trained_count; i++) {
    struct param *param = train->trained[i];
    const int64_t members = member_count(train, param);
    for (int64_t r = 0; r < members; r++) {
      float *gradient = gradients_at(train->gradients, i, r);
      if (param->member_gradients) param->member_gradients[r] = gradient;
      if (r == 0) param->gradient = gradient;
    }
    train->complete[i] = false;
  }
  train->released = 0;
  train->exchange_status = STATUS_OK;
}

static enum status hand_over(struct train *train, int64_t tensor) {
  const int64_t members = member_count(train, train->trained[tensor]);
  for (int64_t r = 0; r < members; r++) TRY(gradients_done(train->gradients, tensor, r));
  return STATUS_OK;
}

/* Hands over every complete gradient whose turn it is; all that are left when `all`. */
static enum status release(struct train *train, bool all) {
  while (train->released < train->trained_count) {
    const int64_t tensor = train->trained_count - 1 - train->released;
    if (!all && !train->complete[tensor]) return STATUS_OK;
    TRY(hand_over(train, tensor));
    train->released++;
  }
  return STATUS_OK;
}

static int64_t index_of(const struct train *train, const struct param *param) {
  int64_t i = train->trained_count - 1;
  while (i >= 0 && train->trained[i] != param) i--;
  return i;
}

void train_exchange_ready(void *context, struct param *param) {
  struct train *train = context;
  const int64_t tensor = index_of(train, param);
  if (tensor < 0 || train->exchange_status != STATUS_OK) return;
  train->complete[tensor] = true;
  train->exchange_status = release(train, false);
}

enum status train_exchange_end(struct train *train) {
  TRY(train->exchange_status);
  TRY(release(train, true));
  return gradients_end(train->gradients);
}

static size_t gradient_bytes(const struct param *param) {
  return (size_t)(param->row_count * param->cols) * sizeof(float);
}

/* The summed gradients of derived parameters, which every rank has, become gradients of the rows
 * they come from; afterwards they are gone, so that they do not count in the norm. */
static enum status complete_derived(struct train *train) {
  if (!train->flow.kind->complete_gradients) return STATUS_OK;
  for (int64_t i = 0; i < train->trained_count; i++)
    train->trained[i]->gradient = gradients_sum(train->gradients, i);
  TRY(train->flow.kind->complete_gradients(&train->flow));
  for (int64_t i = 0; i < train->trained_count; i++)
    if (train->trained[i]->derived)
      memset(train->trained[i]->gradient, 0, gradient_bytes(train->trained[i]));
  return STATUS_OK;
}

enum status train_exchange_finish(struct train *train, double *norm) {
  TRY(gradients_finish(train->gradients));
  TRY(complete_derived(train));
  return gradients_norm(train->gradients, norm, train->squares);
}
