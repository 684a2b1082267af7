#include "sharding/checkpoint_runs.h"

#include <inttypes.h>
#include <stdlib.h>

struct safetensors_tensor checkpoint_runs_tensor(const struct checkpoint_item *item) {
  struct safetensors_tensor tensor = {
      .name = (char *)item->name, .dtype = item->dtype, .dimensions = item->dimensions};
  for (int i = 0; i < item->dimensions; i++) tensor.shape[i] = item->shape[i];
  return tensor;
}

uint64_t checkpoint_runs_row_bytes(const struct checkpoint_item *item) {
  const struct safetensors_tensor tensor = checkpoint_runs_tensor(item);
  return safetensors_row_bytes(&tensor);
}

struct assignment {
  const struct checkpoint_items *items;
  const struct checkpoint_held *held;
  int ranks;
};

/* Who writes `row` of an item, and the row before which that ends. Ranks are asked in a circle that
 * begins at another one for each item. -1: nobody holds it. */
static int owner_of(const struct assignment *assignment, int64_t item, int64_t row, int64_t *end) {
  *end = INT64_MAX;
  for (int i = 0; i < assignment->ranks; i++) {
    const int rank = (int)((item + i) % assignment->ranks);
    const struct checkpoint_held *held = &assignment->held[rank * assignment->items->count + item];
    if (held->first_row > row && held->rows && held->first_row < *end) *end = held->first_row;
    if (row < held->first_row || row >= held->first_row + held->rows) continue;
    if (held->first_row + held->rows < *end) *end = held->first_row + held->rows;
    return rank;
  }
  return -1;
}

static enum status add_run(struct checkpoint_runs *runs, struct checkpoint_run run) {
  const int64_t n = runs->count;
  if ((n & (n - 1)) == 0) { /* full at powers of two */
    struct checkpoint_run *larger =
        realloc(runs->runs, (size_t)(n ? 2 * n : 1) * sizeof *runs->runs);
    CHECK(larger, STATUS_ENVIRONMENT, "out of memory: the plan of a checkpoint");
    runs->runs = larger;
  }
  runs->runs[runs->count++] = run;
  return STATUS_OK;
}

static enum status add_piece(struct checkpoint_runs *runs, const struct assignment *assignment,
                             const struct checkpoint_piece *piece) {
  const struct checkpoint_item *item = &assignment->items->items[piece->tensor];
  const uint64_t row_bytes = checkpoint_runs_row_bytes(item);
  const int64_t end = piece->first_row + piece->rows;
  for (int64_t row = piece->first_row; row < end;) {
    int64_t next;
    const int owner = owner_of(assignment, piece->tensor, row, &next);
    CHECK(owner >= 0, STATUS_MISMATCH, "row %" PRId64 " of '%s' is held by no rank", row,
          item->name);
    if (next > end) next = end;
    const struct checkpoint_run run = {.file = piece->file,
                                       .begin = piece->offset +
                                                (uint64_t)(row - piece->first_row) * row_bytes,
                                       .bytes = (uint64_t)(next - row) * row_bytes,
                                       .owner = owner,
                                       .item = piece->tensor,
                                       .item_offset = (uint64_t)row * row_bytes};
    if (run.bytes) TRY(add_run(runs, run));
    row = next;
  }
  return STATUS_OK;
}

enum status checkpoint_runs_make(struct checkpoint_runs *runs,
                                 const struct checkpoint_layout *layout,
                                 const struct checkpoint_items *items,
                                 const struct checkpoint_held *held, int ranks) {
  const struct assignment assignment = {.items = items, .held = held, .ranks = ranks};
  enum status status = STATUS_OK;
  *runs = (struct checkpoint_runs){0};
  for (int64_t i = 0; i < layout->piece_count && status == STATUS_OK; i++)
    status = add_piece(runs, &assignment, &layout->pieces[i]);
  if (status != STATUS_OK) checkpoint_runs_free(runs);
  return status;
}

void checkpoint_runs_free(struct checkpoint_runs *runs) {
  free(runs->runs);
  *runs = (struct checkpoint_runs){0};
}
