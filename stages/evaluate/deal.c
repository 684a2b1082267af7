#include "stages/evaluate/deal.h"

#include <stdlib.h>

#include "sharding/comm.h"

static struct diversity_rows block_of(const struct deal *deal, int64_t first) {
  const struct diversity_rows *rows = &deal->rows;
  const int64_t left = rows->count - first, batch = deal->stage->options->batch;
  return (struct diversity_rows){.tokens = rows->tokens + first * rows->positions,
                                 .lengths = rows->lengths + first,
                                 .count = left < batch ? left : batch,
                                 .positions = rows->positions};
}

static enum status run_mine(double *values, int64_t width, const struct deal *deal) {
  const struct comm *comm = deal->stage->comm;
  const int64_t batch = deal->stage->options->batch, rows = deal->rows.count;
  for (int64_t first = comm->rank * batch; first < rows; first += comm->size * batch) {
    TRY(deal->run(deal->context, block_of(deal, first), first, values + first * width));
    CHECK(!stage_stop_requested(), STATUS_STOPPED, "stopped on request after row %lld of %lld",
          (long long)first, (long long)rows);
  }
  return STATUS_OK;
}

enum status deal_rows(double *values, int64_t width, const struct deal *deal) {
  struct comm *comm = deal->stage->comm;
  const int64_t count = deal->rows.count * width;
  for (int64_t i = 0; i < count; i++) values[i] = 0;
  TRY(comm_agree(comm, run_mine(values, width, deal)));
  /* One rank has a number, the others 0: exact in any order. */
  return comm_allreduce(comm, values, count, DTYPE_F64, COMM_SUM);
}

static enum status take(double **values, int64_t count) {
  *values = malloc(((size_t)count + 1) * sizeof **values);
  CHECK(*values, STATUS_ENVIRONMENT, "out of memory: %lld numbers of rows", (long long)count);
  return STATUS_OK;
}

enum status deal_sum(double *sums, int64_t width, const struct deal *deal) {
  const int64_t count = deal->rows.count * width;
  double *values;
  enum status status = comm_agree(deal->stage->comm, take(&values, count));
  if (status == STATUS_OK) status = deal_rows(values, width, deal);
  for (int64_t i = 0; i < width; i++) sums[i] = 0;
  for (int64_t i = 0; status == STATUS_OK && i < count; i++) sums[i % width] += values[i];
  free(values);
  return status;
}
