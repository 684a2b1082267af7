#include "stages/model/layers/head_sample.h"

#include "stages/model/layers/head_best.h"
#include "stages/model/layers/head_tiles.h"
#include "stages/model/tape/array.h"

/* The streams and positions of the draws of all tokens. */
static void gather_draws(struct tape *tape, struct head_best *best, const struct head *head,
                         const struct random_stream *streams, int64_t positions) {
  const struct head_tokens *tokens = best->tokens;
  const size_t n = (size_t)tokens->n, room = (size_t)tokens->room;
  struct random_stream *all = tape_save(tape, room * sizeof(*all));
  struct random_stream *own = tape_save(tape, n * sizeof(*own));
  int64_t *all_places = tape_save(tape, room * sizeof(*all_places));
  int64_t *places = tape_save(tape, n * sizeof(*places));
  for (int64_t i = 0; own && i < tokens->n; i++) {
    own[i] = streams[i / positions];
    places[i] = i % positions * head->vocab->size;
  }
  head_tokens_gather(tape, tokens, all, own, sizeof(*all));
  head_tokens_gather(tape, tokens, all_places, places, sizeof(*places));
  best->streams = all;
  best->positions = all_places;
}

void head_sample(struct tape *tape, int32_t *ids, struct value *x, const struct head *head,
                 double temperature, const struct random_stream *streams, int64_t positions) {
  const size_t mark = arena_mark(tape->arena);
  struct head_tokens tokens;
  head_tiles_check(head->vocab, head->w, head->b, x->cols);
  head_tokens_open(tape, &tokens, head->vocab, head->tiling, x->rows, NULL, NULL);
  struct head_best best = {
      .tokens = &tokens, .w = head->w, .b = head->b, .temperature = temperature};
  best.x_all = head_tokens_gather_rows(tape, &tokens, x);
  if (temperature > 0) gather_draws(tape, &best, head, streams, positions);
  head_best_find(tape, ids, &best);
  arena_reset(tape->arena, mark);
}
