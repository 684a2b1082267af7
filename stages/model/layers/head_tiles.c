#include "stages/model/layers/head_tiles.h"

#include <assert.h>

#include "sharding/tree.h"
#include "stages/model/tape/array.h"

static struct head_tile cut(int64_t first, int64_t end, int64_t size) {
  return (struct head_tile){first, head_tokens_piece(first, end, size), end, size};
}

struct head_tile head_tiles_first(const struct head_tokens *tokens, int64_t slice) {
  const struct split rows = vocab_slice(tokens->vocab, tokens->vocab->first_slice + slice);
  return cut(rows.begin, rows.end, tokens->tiling.rows);
}

struct head_tile head_tiles_next(struct head_tile tile) {
  return cut(tile.first + tile.rows, tile.end, tile.size);
}

struct head_tile head_tiles_first_chunk(struct head_tile tile) {
  return cut(tile.first, tile.first + tile.rows, HEAD_CHUNK_ROWS);
}

void head_tiles_check(const struct vocab *vocab, const struct param *w, const struct param *b,
                      int64_t c) {
  assert(w->cols == c && w->row_begin == vocab->rows.begin);
  assert(w->row_count == split_count(vocab->rows));
  assert(!b || (b->cols == 1 && b->kind == PARAM_VECTOR && b->row_begin == w->row_begin &&
                b->row_count == w->row_count));
  (void)vocab, (void)w, (void)b, (void)c;
}

const void *head_tiles_rows(const struct tape *tape, const struct param *w, struct head_tile tile) {
  return array_at(tape, w->data, (tile.first - w->row_begin) * w->cols);
}

void head_tiles_logits(struct tape *tape, void *logits, const void *x, const struct param *w,
                       const struct param *b, struct head_tile tile, int64_t count) {
  const void *bias = b ? array_sum_at(tape, b->data, tile.first - b->row_begin) : NULL;
  tape->kernels->linear_forward_sum(logits, x, head_tiles_rows(tape, w, tile), bias, count,
                                    tile.rows, w->cols);
}

void head_stack_open(struct tape *tape, struct head_stack *stack, const struct vocab *vocab,
                     int64_t rows, int64_t c) {
  *stack = (struct head_stack){.rows = rows, .c = c, .slices = vocab_slices_local(vocab)};
  stack->levels = array_sums(tape, tree_depth(stack->slices) * rows * c);
  stack->leaf = array_sums(tape, rows * c);
}

static void *level_at(const struct tape *tape, const struct head_stack *stack, int64_t level,
                      int64_t first) {
  return array_sum_at(tape, stack->levels, (level * stack->rows + first) * stack->c);
}

void *head_stack_begin(struct tape *tape, const struct head_stack *stack, int64_t slice,
                       int64_t first, int64_t count) {
  const struct tree_place place = tree_place(stack->slices, slice);
  void *rows = place.merges == 0 ? level_at(tape, stack, place.level, first)
                                 : array_sum_at(tape, stack->leaf, first * stack->c);
  array_clear_sums(tape, rows, count * stack->c);
  return rows;
}

void head_stack_end(struct tape *tape, const struct head_stack *stack, int64_t slice, int64_t first,
                    int64_t count) {
  const struct tree_place place = tree_place(stack->slices, slice);
  const void *from = array_sum_at(tape, stack->leaf, first * stack->c);
  for (int64_t i = 0; i < place.merges; i++) {
    void *to = level_at(tape, stack, place.level - i, first);
    tape->kernels->add_sum(to, from, count * stack->c);
    from = to;
  }
}
