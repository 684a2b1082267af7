#include "stages/model/layers/head_sample.h"

#include "stages/model/layers/head_best.h"
#include "stages/model/layers/head_nucleus.h"
#include "stages/model/layers/head_tiles.h"

void head_sample(struct tape *tape, int32_t *ids, struct value *x, const struct head *head,
                 struct head_law law, const struct random_stream *streams, int64_t positions) {
  const size_t mark = arena_mark(tape->arena);
  struct head_tokens tokens;
  head_tiles_check(head->vocab, head->w, head->b, x->cols);
  head_tokens_open(tape, &tokens, head->vocab, head->tiling, x->rows, NULL, NULL);
  struct head_best best = {
      .tokens = &tokens, .w = head->w, .b = head->b, .temperature = law.temperature};
  best.x_all = head_tokens_gather_rows(tape, &tokens, x);
  if (law.temperature > 0) {
    best.draws = head_tokens_gather_draws(tape, &tokens, streams, positions);
    if (law.top_p < 1) best.floors = head_nucleus_floors(tape, &best, law.top_p);
  }
  head_best_find(tape, ids, &best);
  arena_reset(tape->arena, mark);
}
