#include "stages/model/layers/vocab_embedding.h"

#include <assert.h>
#include <string.h>

#include "stages/model/tape/array.h"

struct vocab_embedding_record {
  struct record record;
  struct vocab *vocab;
  const int32_t *ids;
  struct value *y;
  struct param *table;
};

/* The tokens of all members: their ids and the gradients of their rows. */
struct gathered {
  int64_t counts[VOCAB_SLICES_MAX];
  int64_t total;
  int32_t *ids;
  void *rows;
};

static enum status gather(struct tape *tape, const struct vocab_embedding_record *kept,
                          struct gathered *all) {
  const struct value *y = kept->y;
  const int64_t row_bytes = y->cols * (int64_t)dtype_bytes(tape->kernels->element);
  TRY(vocab_counts(kept->vocab, all->counts, &all->total, y->rows));
  all->ids = tape_save(tape, (size_t)all->total * sizeof(*all->ids));
  all->rows = array_elements(tape, all->total * y->cols);
  if (arena_is_measuring(tape->arena)) return STATUS_OK;
  TRY(vocab_gather(kept->vocab, all->ids, kept->ids, all->counts, (int64_t)sizeof(*all->ids)));
  return vocab_gather(kept->vocab, all->rows, y->gradient, all->counts, row_bytes);
}

enum { TILE_ROWS = 8 };

/* The tokens of each tile of rows, in order: first[tile], then next[token]; -1 at the end. */
struct lists {
  int32_t *first, *next;
};

static struct lists take_lists(struct tape *tape, const struct param *table, int64_t tokens) {
  const size_t tiles = (size_t)(table->row_count / TILE_ROWS + 1);
  return (struct lists){.first = tape_save(tape, tiles * sizeof(int32_t)),
                        .next = tape_save(tape, (size_t)tokens * sizeof(int32_t))};
}

static void fill_lists(const struct lists *lists, const struct param *table, const int32_t *ids,
                       int64_t count) {
  memset(lists->first, -1, (size_t)(table->row_count / TILE_ROWS + 1) * sizeof(int32_t));
  for (int64_t i = count - 1; i >= 0; i--) {
    const int64_t row = ids[i] - table->row_begin;
    if (row < 0 || row >= table->row_count) continue;
    lists->next[i] = lists->first[row / TILE_ROWS];
    lists->first[row / TILE_ROWS] = (int32_t)i;
  }
}

/* tile = the sum of the gradients of its tokens. */
static void sum_tile(struct tape *tape, const struct param *table, void *tile, int64_t row,
                     int64_t rows, const struct lists *lists, const int32_t *ids,
                     const void *gradients) {
  array_clear_sums(tape, tile, rows * table->cols);
  for (int32_t i = lists->first[row / TILE_ROWS]; i >= 0; i = lists->next[i])
    tape->kernels->embedding_backward(tile, array_at(tape, gradients, i * table->cols), ids + i, 1,
                                      table->cols, table->row_begin + row, rows);
}

/* As add_rows, in finished tiles; most hold zeros only. */
static void give_rows(struct tape *tape, const struct vocab_embedding_record *kept,
                      const struct gathered *all) {
  struct param *table = kept->table;
  void *tile = array_sums(tape, TILE_ROWS * table->cols);
  const struct lists lists = take_lists(tape, table, all->total);
  if (arena_is_measuring(tape->arena)) return;
  int64_t first = 0;
  for (int r = 0; r < vocab_members(kept->vocab); first += all->counts[r], r++) {
    const int32_t *ids = all->ids + first;
    fill_lists(&lists, table, ids, all->counts[r]);
    for (int64_t row = 0, rows; row < table->row_count; row += rows) {
      rows = table->row_count - row < TILE_ROWS ? table->row_count - row : TILE_ROWS;
      const bool empty = lists.first[row / TILE_ROWS] < 0;
      if (!empty)
        sum_tile(tape, table, tile, row, rows, &lists, ids,
                 array_at(tape, all->rows, first * table->cols));
      table->sink->give(table->sink->context, table, r, row, rows, empty ? NULL : tile);
    }
  }
}

/* Each member adds to its own rows of the table, the tokens of one member after the other. */
static void add_rows(struct tape *tape, const struct vocab_embedding_record *kept,
                     const struct gathered *all) {
  const struct param *table = kept->table;
  int64_t first = 0;
  for (int r = 0; r < vocab_members(kept->vocab); first += all->counts[r], r++) {
    void *gradient = param_member_gradient(table, r);
    if (!gradient) continue;
    tape->kernels->embedding_backward(gradient, array_at(tape, all->rows, first * table->cols),
                                      all->ids ? all->ids + first : NULL, all->counts[r],
                                      table->cols, table->row_begin, table->row_count);
  }
}

static void vocab_embedding_backward(struct tape *tape, const struct record *record) {
  const struct vocab_embedding_record *kept = (const struct vocab_embedding_record *)record;
  if (!kept->y->reached || kept->table->frozen) return;
  const size_t mark = arena_mark(tape->arena);
  struct gathered all;
  tape->status = gather(tape, kept, &all);
  if (tape->status == STATUS_OK && param_gives(kept->table)) give_rows(tape, kept, &all);
  if (tape->status == STATUS_OK && !param_gives(kept->table)) add_rows(tape, kept, &all);
  arena_reset(tape->arena, mark);
}

static const struct record_kind vocab_embedding_kind = {"vocab_embedding", vocab_embedding_backward,
                                                        NULL};

static void look_up(struct tape *tape, struct vocab *vocab, void *y, const int32_t *ids, int64_t n,
                    const struct param *table) {
  const int64_t row_bytes = table->cols * (int64_t)dtype_bytes(tape->kernels->element);
  const size_t mark = arena_mark(tape->arena);
  int64_t *wide = tape_save(tape, (size_t)n * sizeof(*wide));
  for (int64_t i = 0; wide && i < n; i++) wide[i] = ids[i];
  tape->status = vocab_lookup(vocab, y, table->data, wide, n, row_bytes, tape->arena);
  arena_reset(tape->arena, mark);
}

struct value *vocab_embedding_forward(struct tape *tape, struct vocab *vocab, const int32_t *ids,
                                      int64_t n, struct param *table) {
  assert(table->row_begin == vocab->rows.begin && table->row_count == split_count(vocab->rows));
  struct value *y = tape_value(tape, n, table->cols);
  if (tape->status == STATUS_OK) look_up(tape, vocab, y->data, ids, n, table);
  struct vocab_embedding_record *kept =
      tape_record(tape, &vocab_embedding_kind, sizeof(*kept), (struct param *const[]){table}, 1);
  if (!kept) return y;
  kept->vocab = vocab;
  kept->ids = ids;
  kept->y = y;
  kept->table = table;
  return y;
}
