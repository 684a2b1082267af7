/* The rows of a batch that one part of a distillation covers, as a batch of their own. */
#include "stages/flow/cfm_state.h"

struct rows {
  struct flow_batch batch;
  int32_t *tokens, *lengths;
  int64_t *samples, *strata;
};

static struct rows open_rows(struct tape *tape, const struct flow_batch *batch) {
  const size_t count = (size_t)batch->count, n = count * (size_t)batch->positions;
  struct arena *arena = tape->records;
  struct rows rows = {.batch = *batch,
                      .tokens = arena_take(arena, n * sizeof(int32_t)),
                      .lengths = arena_take(arena, count * sizeof(int32_t)),
                      .samples = arena_take(arena, count * sizeof(int64_t)),
                      .strata = arena_take(arena, count * sizeof(int64_t))};
  rows.batch.count = 0;
  rows.batch.tokens = rows.tokens;
  rows.batch.lengths = rows.lengths;
  rows.batch.samples = rows.samples;
  rows.batch.strata = rows.strata;
  return rows;
}

static void add_row(struct rows *rows, const struct flow_batch *batch, int64_t row,
                    int32_t length) {
  const int64_t j = rows->batch.count++, T = batch->positions;
  for (int64_t i = 0; i < T; i++) rows->tokens[j * T + i] = batch->tokens[row * T + i];
  rows->lengths[j] = length;
  rows->samples[j] = batch->samples[row];
  rows->strata[j] = batch->strata[row];
}

/* A measuring tape takes every row; a batch without any such row keeps one that nothing covers. */
struct flow_batch cfm_pick_rows(const struct flow *flow, struct tape *tape,
                                const struct flow_batch *batch) {
  if (batch->rows == FLOW_ALL_ROWS) return *batch;
  const bool jumps = batch->rows == FLOW_JUMP_ROWS;
  struct rows rows = open_rows(tape, batch);
  for (int64_t row = 0; row < batch->count; row++)
    if (arena_is_measuring(tape->arena) || cfm_draw_row(flow, batch, row).jump == jumps)
      add_row(&rows, batch, row, batch->lengths[row]);
  if (rows.batch.count == 0) add_row(&rows, batch, 0, 0);
  return rows.batch;
}
