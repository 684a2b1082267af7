#include "stages/model/layers/head_nucleus.h"

#include <math.h>

#include "stages/model/layers/head_statistics.h"
#include "stages/model/layers/head_tiles.h"
#include "stages/model/tape/array.h"

enum { BINS = 1024 };

static const double REACH = 40;         /* in temperatures below the maximum; beyond it: e^-40 */
static const double UNIT = 0x1p-40;     /* of shares, relative to that of the maximum */

/* A block of tokens: what is counted, and where. */
struct count {
  const struct head_best *best;
  const double *maximum; /* [N] */
  int64_t first, tokens;
  double *begin;  /* [tokens] distance at which the counted interval begins, in temperatures */
  double width;   /* of a bin */
  int64_t *bins;  /* [tokens][BINS] shares in units */
  int64_t *above; /* [tokens] shares nearer than the interval */
  int64_t *wanted; /* [tokens] */
  void *logits;   /* of a tile */
  double *row;
};

static void add_token(const struct count *count, int64_t i, const double *logits, int64_t rows) {
  for (int64_t v = 0; v < rows; v++) {
    const double distance =
        (count->maximum[count->first + i] - logits[v]) / count->best->temperature;
    const double bin = (distance - count->begin[i]) / count->width;
    if (bin >= 0 && bin < BINS)
      count->bins[i * BINS + (int64_t)bin] += llround(exp(-distance) / UNIT);
  }
}

static void add_tile(struct tape *tape, const struct count *count, struct head_tile tile) {
  const struct head_best *best = count->best;
  head_tiles_logits(tape, count->logits, array_at(tape, best->x_all, count->first * best->w->cols),
                    best->w, best->b, tile, count->tokens);
  for (int64_t i = 0; count->bins && i < count->tokens; i++) {
    array_get_sums(tape, count->row, array_sum_at(tape, count->logits, i * tile.rows), tile.rows);
    add_token(count, i, count->row, tile.rows);
  }
}

static void add_all(struct tape *tape, const struct count *count) {
  const struct head_tokens *tokens = count->best->tokens;
  const int64_t bins = count->tokens * BINS;
  for (int64_t i = 0; count->bins && i < bins; i++) count->bins[i] = 0;
  for (int64_t slice = 0; slice < vocab_slices_local(tokens->vocab); slice++)
    for (struct head_tile tile = head_tiles_first(tokens, slice); tile.rows > 0;
         tile = head_tiles_next(tile))
      add_tile(tape, count, tile);
  if (count->bins && tokens->vocab->group && tape->status == STATUS_OK)
    tape->status = comm_allreduce(tokens->vocab->group, count->bins, bins, DTYPE_I64, COMM_SUM);
}

/* The bin in which the wanted share is reached; adds the nearer ones to `above`. */
static int64_t find_bin(const struct count *count, int64_t i) {
  int64_t bin = 0;
  while (bin < BINS - 1 && count->above[i] + count->bins[i * BINS + bin] < count->wanted[i])
    count->above[i] += count->bins[i * BINS + bin++];
  return bin;
}

static void want(const struct count *count, double top_p) {
  for (int64_t i = 0; count->bins && i < count->tokens; i++) {
    int64_t total = 0;
    for (int64_t bin = 0; bin < BINS; bin++) total += count->bins[i * BINS + bin];
    count->above[i] = 0;
    count->wanted[i] = (int64_t)ceil(top_p * (double)total);
  }
}

static void count_block(struct tape *tape, struct count *count, double top_p, double *floors) {
  count->width = REACH / BINS;
  for (int64_t i = 0; count->bins && i < count->tokens; i++) count->begin[i] = 0;
  add_all(tape, count);
  want(count, top_p);
  for (int64_t i = 0; count->bins && i < count->tokens; i++)
    count->begin[i] = count->width * (double)find_bin(count, i);
  count->width /= BINS;
  add_all(tape, count);
  for (int64_t i = 0; count->bins && i < count->tokens; i++) {
    const double distance = count->begin[i] + count->width * (double)(find_bin(count, i) + 1);
    floors[count->first + i] =
        count->maximum[count->first + i] - count->best->temperature * distance;
  }
}

static struct count open_count(struct tape *tape, const struct head_best *best,
                               const double *maximum) {
  const size_t tokens = (size_t)best->tokens->tiling.tokens;
  return (struct count){
      .best = best,
      .maximum = maximum,
      .begin = tape_save(tape, tokens * sizeof(double)),
      .bins = tape_save(tape, tokens * BINS * sizeof(int64_t)),
      .above = tape_save(tape, tokens * sizeof(int64_t)),
      .wanted = tape_save(tape, tokens * sizeof(int64_t)),
      .logits = array_sums(tape, head_tokens_tile_count(best->tokens)),
      .row = tape_save(tape, (size_t)best->tokens->tiling.rows * sizeof(double))};
}

const double *head_nucleus_floors(struct tape *tape, const struct head_best *best, double top_p) {
  const struct head_tokens *tokens = best->tokens;
  double *floors = tape_save(tape, (size_t)tokens->room * sizeof *floors);
  const size_t mark = arena_mark(tape->arena);
  struct head_statistics statistics;
  head_statistics_open(tape, &statistics, tokens, 1u << HEAD_SUM);
  head_statistics_pass(tape, &statistics, tokens, best->x_all, best->w, best->b, NULL);
  struct count count = open_count(tape, best, statistics.maximum);
  for (count.first = 0; count.first < tokens->total; count.first += count.tokens) {
    count.tokens = head_tokens_block(tokens, count.first, tokens->total);
    count_block(tape, &count, top_p, floors);
  }
  arena_reset(tape->arena, mark);
  return floors;
}
