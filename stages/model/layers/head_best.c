#include "stages/model/layers/head_best.h"

#include <math.h>

#include "stages/model/layers/head_tiles.h"
#include "stages/model/tape/array.h"

/* The best of this member's rows for all tokens. */
struct found {
  double *score;
  int32_t *ids;
};

/* Leaves out ids below the floors of a block of tokens. */
static void mask(struct tape *tape, void *logits, const double *floors, int64_t count,
                 int64_t rows, double *row) {
  for (int64_t i = 0; floors && row && i < count; i++) {
    void *place = array_sum_at(tape, logits, i * rows);
    array_get_sums(tape, row, place, rows);
    for (int64_t v = 0; v < rows; v++)
      if (row[v] < floors[i]) row[v] = -INFINITY;
    array_put_sums(tape, place, row, rows);
  }
}

static void search(struct tape *tape, const struct head_best *best, const struct found *found) {
  const struct vocab *vocab = best->tokens->vocab;
  const int64_t total = best->tokens->total;
  void *logits = array_sums(tape, head_tokens_tile_count(best->tokens));
  double *row = tape_save(tape, (size_t)best->tokens->tiling.rows * sizeof *row);
  for (int64_t slice = 0; slice < vocab_slices_local(vocab); slice++)
    for (struct head_tile tile = head_tiles_first(best->tokens, slice); tile.rows > 0;
         tile = head_tiles_next(tile))
      for (int64_t i = 0, count; i < total; i += count) {
        count = head_tokens_block(best->tokens, i, total);
        const void *x = array_at(tape, best->x_all, i * best->w->cols);
        head_tiles_logits(tape, logits, x, best->w, best->b, tile, count);
        mask(tape, logits, best->floors ? best->floors + i : NULL, count, tile.rows, row);
        if (found->score)
          tape->kernels->softmax_tile_best(found->score + i, found->ids + i, logits,
                                           best->draws.streams ? best->draws.streams + i : NULL,
                                           best->draws.streams ? best->draws.positions + i : NULL,
                                           best->temperature, count, tile.rows, tile.first);
      }
}

/* The lowest id among the members that have the highest score. */
static enum status agree(struct vocab *vocab, const struct found *found, double *highest,
                         int64_t total) {
  for (int64_t i = 0; i < total; i++) highest[i] = found->score[i];
  if (!vocab->group) return STATUS_OK;
  TRY(comm_allreduce(vocab->group, highest, total, DTYPE_F64, COMM_MAX));
  for (int64_t i = 0; i < total; i++)
    if (found->score[i] != highest[i]) found->ids[i] = INT32_MAX;
  return comm_allreduce(vocab->group, found->ids, total, DTYPE_I32, COMM_MIN);
}

static void write_own(const struct head_tokens *tokens, int32_t *ids, const int32_t *all) {
  for (int64_t i = 0; i < tokens->n; i++) ids[i] = -1;
  for (int64_t i = 0; i < tokens->own; i++) ids[tokens->index[i]] = all[tokens->first + i];
}

void head_best_find(struct tape *tape, int32_t *ids, const struct head_best *best) {
  const struct head_tokens *tokens = best->tokens;
  const size_t mark = arena_mark(tape->arena);
  const size_t room = (size_t)tokens->room;
  const struct found found = {tape_save(tape, room * sizeof(double)),
                              tape_save(tape, room * sizeof(int32_t))};
  double *highest = tape_save(tape, room * sizeof(*highest));
  for (int64_t i = 0; found.score && i < tokens->room; i++) {
    found.score[i] = -INFINITY;
    found.ids[i] = 0;
  }
  search(tape, best, &found);
  if (tape->status == STATUS_OK && found.score)
    tape->status = agree(tokens->vocab, &found, highest, tokens->total);
  if (tape->status == STATUS_OK && found.score) write_own(tokens, ids, found.ids);
  arena_reset(tape->arena, mark);
}
