#include "stages/train/train_exchange.h"

#include <string.h>

static int64_t member_count(const struct train *train, const struct param *param) {
  return param->sliced ? train->grid.group.size : 1;
}

void train_exchange_begin(struct train *train, int64_t j) {
  gradients_begin(train->gradients, j);
  memset(train->complete, 0, (size_t)train->trained_count * sizeof(*train->complete));
  memset(train->opened, 0, (size_t)train->trained_count * sizeof(*train->opened));
  train->released = 0;
  train->exchange_status = STATUS_OK;
}

static int64_t index_of(const struct train *train, const struct param *param) {
  int64_t i = train->trained_count - 1;
  while (i >= 0 && train->trained[i] != param) i--;
  return i;
}

static enum status open_members(struct train *train, int64_t tensor) {
  struct param *param = train->trained[tensor];
  const int64_t members = member_count(train, param);
  for (int64_t r = 0; r < members; r++) {
    float *gradient;
    TRY(gradients_at(&gradient, train->gradients, tensor, r));
    if (param->member_gradients) param->member_gradients[r] = gradient;
    if (r == 0) param->gradient = gradient;
  }
  return STATUS_OK;
}

void train_exchange_open(void *context, struct param *param) {
  struct train *train = context;
  const int64_t tensor = index_of(train, param);
  if (tensor < 0 || train->opened[tensor] || train->exchange_status != STATUS_OK) return;
  train->opened[tensor] = true;
  if (!param_gives(param)) train->exchange_status = open_members(train, tensor);
}

/* Ends the contributions of members below `members`. */
static enum status end_members(struct train *train, int64_t tensor, int64_t members) {
  for (int64_t r = gradients_members_done(train->gradients, tensor); r < members; r++)
    TRY(gradients_done(train->gradients, tensor, r));
  return STATUS_OK;
}

static void give(void *context, struct param *param, int64_t member, int64_t first, int64_t count,
                 const void *values) {
  struct train *train = context;
  const int64_t tensor = index_of(train, param);
  if (train->exchange_status == STATUS_OK)
    train->exchange_status = end_members(train, tensor, member);
  if (train->exchange_status == STATUS_OK)
    gradients_give(train->gradients, tensor, member, first * param->cols, count * param->cols,
                   values);
}

static void add(void *context, struct param *param, int64_t first, int64_t count,
                const float *values) {
  struct train *train = context;
  const struct gradients_sum sum = gradients_sum(train->gradients, index_of(train, param));
  gradients_add(&sum, first * param->cols, count * param->cols, values);
}

void train_exchange_connect(struct train *train) {
  train->sink = (struct param_sink){train, give, add};
  for (int64_t i = 0; i < train->trained_count; i++)
    if (train->trained[i]->sliced) train->trained[i]->sink = &train->sink;
}

static enum status hand_over(struct train *train, int64_t tensor) {
  struct param *param = train->trained[tensor];
  const int64_t members = member_count(train, param);
  param->gradient = NULL;
  for (int64_t r = 0; param->member_gradients && r < members; r++)
    param->member_gradients[r] = NULL;
  return end_members(train, tensor, members);
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

static int64_t held(const struct param *param) {
  return param->row_count * param->cols;
}

/* The summed gradient of a derived parameter, as F32. */
static void read_derived(struct train *train, int64_t tensor) {
  struct param *param = train->trained[tensor];
  const struct gradients_sum sum = gradients_sum(train->gradients, tensor);
  param->gradient = train->derived[tensor];
  gradients_read(param->gradient, &sum, 0, held(param));
}

/* The summed gradients of derived parameters, which every rank has, become gradients of the rows
 * they come from; afterwards they are gone, so that they do not count in the norm. */
static enum status complete_derived(struct train *train) {
  if (!train->flow.kind->complete_gradients) return STATUS_OK;
  for (int64_t i = 0; i < train->trained_count; i++)
    if (train->trained[i]->derived) read_derived(train, i);
  TRY(train->flow.kind->complete_gradients(&train->flow));
  for (int64_t i = 0; i < train->trained_count; i++) {
    if (!train->trained[i]->derived) continue;
    const struct gradients_sum sum = gradients_sum(train->gradients, i);
    memset(sum.values, 0, (size_t)held(train->trained[i]) * dtype_bytes(sum.dtype));
    train->trained[i]->gradient = NULL;
  }
  return STATUS_OK;
}

bool train_exchange_keeps(const struct train *train) {
  return train->flow.distill && train->flow.distill->distill_surgery;
}

enum status train_exchange_keep(struct train *train) {
  TRY(gradients_finish(train->gradients));
  gradients_keep(train->gradients);
  return STATUS_OK;
}

enum status train_exchange_finish(struct train *train, double *norm, double *cosine) {
  TRY(gradients_finish(train->gradients));
  if (train_exchange_keeps(train)) TRY(gradients_mend(train->gradients, cosine));
  TRY(complete_derived(train));
  return gradients_norm(train->gradients, norm, train->squares);
}
