#include "stages/model/layers/head_backward.h"

#include "stages/model/tape/array.h"

struct scratch {
  struct head_stack dx;
  void *dlogits;
  void *dw, *db; /* a tile of gradients, for a sink */
};

static void take_scratch(struct tape *tape, const struct head_backward *pass,
                         struct scratch *scratch) {
  const struct head_tokens *tokens = pass->tokens;
  head_stack_open(tape, &scratch->dx, tokens->vocab, tokens->room, pass->w->cols);
  const int64_t rows = tokens->tiling.rows;
  scratch->dlogits = array_elements(tape, head_tokens_tile_count(tokens));
  scratch->dw = param_gives(pass->w) ? array_sums(tape, rows * pass->w->cols) : NULL;
  scratch->db = pass->b && param_gives(pass->b) ? array_sums(tape, rows) : NULL;
}

/* Where the gradient of a tile's rows is added; NULL where none is wanted. */
static void *tile_gradient(struct tape *tape, const struct param *param, int64_t member,
                           struct head_tile tile, void *piece) {
  if (!param || param->frozen) return NULL;
  if (param_gives(param)) {
    array_clear_sums(tape, piece, tile.rows * param->cols);
    return piece;
  }
  return array_sum_at(tape, param_member_gradient(param, member),
                      (tile.first - param->row_begin) * param->cols);
}

static void hand_over(const struct tape *tape, struct param *param, int64_t member,
                      struct head_tile tile, const void *piece) {
  if (!param || param->frozen || !param_gives(param) || arena_is_measuring(tape->arena)) return;
  param->sink->give(param->sink->context, param, member, tile.first - param->row_begin, tile.rows,
                    piece);
}

/* What a block adds to: its tokens' dx[count, c], the tile's dw[rows, c] and db[rows], or NULL. */
struct targets {
  void *dx, *dw, *db;
};

/* A chunk of the rows of a block: to dx of all its tokens, to dw and db of chunks of tokens. */
static void add_chunk(struct tape *tape, const struct head_backward *pass,
                      const struct head_block *block, struct head_tile chunk, const void *dlogits,
                      const struct targets *to) {
  const int64_t c = pass->w->cols, stride = block->tile.rows, row = chunk.first - block->tile.first;
  void *dw = array_sum_at(tape, to->dw, row * c), *db = array_sum_at(tape, to->db, row);
  tape->kernels->linear_backward_input_sum(to->dx, array_at(tape, dlogits, row),
                                           head_tiles_rows(tape, pass->w, chunk), block->count,
                                           chunk.rows, c, stride);
  for (int64_t i = 0, count; i < block->count; i += count) {
    count = head_tokens_piece(i, block->count, HEAD_CHUNK_TOKENS);
    const void *slopes = array_at(tape, dlogits, i * stride + row);
    const void *x = array_at(tape, pass->x_all, (block->token + i) * c);
    if (to->dw)
      tape->kernels->linear_backward_weight(dw, slopes, x, count, chunk.rows, c, stride, c);
    if (to->db) tape->kernels->linear_backward_bias(db, slopes, count, chunk.rows, stride);
  }
}

static void add_block(struct tape *tape, const struct head_backward *pass,
                      const struct head_block *block, void *dlogits, const struct targets *to) {
  pass->slope(tape, pass->context, block, dlogits);
  for (struct head_tile chunk = head_tiles_first_chunk(block->tile); chunk.rows > 0;
       chunk = head_tiles_next(chunk))
    add_chunk(tape, pass, block, chunk, dlogits, to);
}

static void add_tile(struct tape *tape, const struct head_backward *pass, int64_t member,
                     struct head_tile tile, int64_t first, const struct scratch *scratch,
                     void *dx) {
  const int64_t end = first + pass->tokens->counts[member];
  struct targets to = {.dw = tile_gradient(tape, pass->w, member, tile, scratch->dw),
                       .db = tile_gradient(tape, pass->b, member, tile, scratch->db)};
  for (int64_t i = first, count; i < end; i += count) {
    count = head_tokens_block(pass->tokens, i, end);
    to.dx = array_sum_at(tape, dx, (i - first) * pass->w->cols);
    add_block(tape, pass, &(struct head_block){tile, i, count}, scratch->dlogits, &to);
  }
  hand_over(tape, pass->w, member, tile, to.dw);
  hand_over(tape, pass->b, member, tile, to.db);
}

static void add_member(struct tape *tape, const struct head_backward *pass, int64_t member,
                       int64_t first, const struct scratch *scratch) {
  const struct vocab *vocab = pass->tokens->vocab;
  const int64_t count = pass->tokens->counts[member];
  for (int64_t slice = 0; slice < vocab_slices_local(vocab); slice++) {
    void *dx = head_stack_begin(tape, &scratch->dx, slice, first, count);
    for (struct head_tile tile = head_tiles_first(pass->tokens, slice); tile.rows > 0;
         tile = head_tiles_next(tile))
      add_tile(tape, pass, member, tile, first, scratch, dx);
    head_stack_end(tape, &scratch->dx, slice, first, count);
  }
}

void head_backward_pass(struct tape *tape, const struct head_backward *pass) {
  const struct head_tokens *tokens = pass->tokens;
  head_tokens_open_gradient(tape, pass->x);
  const size_t mark = arena_mark(tape->arena);
  struct scratch scratch;
  take_scratch(tape, pass, &scratch);
  int64_t first = 0;
  for (int r = 0; r < vocab_members(tokens->vocab); first += tokens->counts[r], r++)
    add_member(tape, pass, r, first, &scratch);
  if (pass->x->needs_gradient) head_tokens_return(tape, tokens, pass->x, scratch.dx.levels);
  arena_reset(tape->arena, mark);
}
