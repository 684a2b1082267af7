#include "stages/model/layers/vocab_embedding.h"

#include <assert.h>

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

enum { TILE_ROWS = 64 };

static bool is_in(const int32_t *ids, int64_t count, int64_t first, int64_t rows) {
  bool found = false;
  for (int64_t i = 0; i < count; i++) found |= ids[i] >= first && ids[i] < first + rows;
  return found;
}

/* As add_rows, in finished tiles; most hold zeros only. */
static void give_rows(struct tape *tape, const struct vocab_embedding_record *kept,
                      const struct gathered *all) {
  struct param *table = kept->table;
  void *tile = array_sums(tape, TILE_ROWS * table->cols);
  if (arena_is_measuring(tape->arena)) return;
  int64_t first = 0;
  for (int r = 0; r < vocab_members(kept->vocab); first += all->counts[r], r++)
    for (int64_t row = 0, rows; row < table->row_count; row += rows) {
      rows = table->row_count - row < TILE_ROWS ? table->row_count - row : TILE_ROWS;
      const int32_t *ids = all->ids + first;
      const bool found = is_in(ids, all->counts[r], table->row_begin + row, rows);
      if (found) array_clear_sums(tape, tile, rows * table->cols);
      if (found)
        tape->kernels->embedding_backward(tile, array_at(tape, all->rows, first * table->cols), ids,
                                          all->counts[r], table->cols, table->row_begin + row,
                                          rows);
      table->sink->give(table->sink->context, table, r, row, rows, found ? tile : NULL);
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
