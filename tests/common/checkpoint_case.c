#include "tests/common/checkpoint_case.h"

#include <stdlib.h>
#include <string.h>

#include "sharding/checkpoint_runs.h"

enum spread { WHOLE, SLICED, OWNED };

static const struct {
  const char *name;
  enum dtype dtype;
  int dimensions;
  int64_t shape[3];
  enum spread spread;
} kinds[CHECKPOINT_CASE_ITEMS] = {
    {"blocks.0.weight", DTYPE_F32, 2, {300, 301}, WHOLE},
    {"table.moment", DTYPE_F32, 2, {5003, 31}, SLICED},
    {"table", DTYPE_BF16, 2, {5003, 401}, SLICED},
    {"moment", DTYPE_F32, 3, {17, 40, 100}, OWNED},
    {"count", DTYPE_I64, 0, {0}, WHOLE},
    {"none", DTYPE_F32, 2, {0, 4}, SLICED},
    {"bytes", DTYPE_U8, 1, {10}, OWNED},
};

/* Where the slice of a rank begins: evenly, growing with the rank, all on the last, or with gaps
 * between that are empty. */
static int64_t border(int64_t rows, int rank, int size, int style) {
  if (style == 0) return rows * rank / size;
  if (style == 1) return rows * rank * (rank + 1) / ((int64_t)size * (size + 1));
  if (style == 2) return rank < size ? 0 : rows;
  return rank % 2 ? rows * (rank + 1) / (size + 1) : rows * rank / (size + 1);
}

static void hold(struct checkpoint_item *item, enum spread spread, int index, int place[3]) {
  const int rank = place[0], size = place[1], style = place[2];
  const int64_t rows = item->dimensions ? item->shape[0] : 1;
  item->rows = rows;
  if (spread == WHOLE && style != 2) return; /* on every rank */
  if (spread == SLICED) {
    item->first_row = border(rows, rank, size, style);
    item->rows = (rank + 1 < size ? border(rows, rank + 1, size, style) : rows) - item->first_row;
  } else if (rank != (index + style) % size) {
    item->rows = 0;
  }
}

void checkpoint_case_make(struct checkpoint_case *made, int rank, int size, int style) {
  *made = (struct checkpoint_case){0};
  made->items = (struct checkpoint_items){.items = made->list, .count = CHECKPOINT_CASE_ITEMS};
  for (int i = 0; i < CHECKPOINT_CASE_ITEMS; i++) {
    struct checkpoint_item *item = &made->list[i];
    item->name = kinds[i].name;
    item->dtype = kinds[i].dtype;
    item->dimensions = kinds[i].dimensions;
    memcpy(item->shape, kinds[i].shape, sizeof kinds[i].shape);
    hold(item, kinds[i].spread, i, (int[3]){rank, size, style});
    item->data = calloc((size_t)item->rows + 1, checkpoint_runs_row_bytes(item));
  }
}

void checkpoint_case_free(struct checkpoint_case *made) {
  for (int i = 0; i < CHECKPOINT_CASE_ITEMS; i++) free(made->list[i].data);
}

static unsigned char content(int item, uint64_t place, int64_t step) {
  const uint64_t mixed = (place + 1) * 2654435761u + (uint64_t)item * 40503u + (uint64_t)step * 97u;
  return (unsigned char)(mixed >> 7);
}

static uint64_t bytes_of(const struct checkpoint_item *item, uint64_t *begin) {
  const uint64_t row = checkpoint_runs_row_bytes(item);
  *begin = (uint64_t)item->first_row * row;
  return (uint64_t)item->rows * row;
}

void checkpoint_case_fill(struct checkpoint_case *made, int64_t step) {
  for (int i = 0; i < made->items.count; i++) {
    uint64_t begin;
    const uint64_t bytes = bytes_of(&made->list[i], &begin);
    unsigned char *data = made->list[i].data;
    for (uint64_t b = 0; b < bytes; b++) data[b] = content(i, begin + b, step);
  }
}

bool checkpoint_case_is(const struct checkpoint_case *made, int64_t step) {
  bool same = true;
  for (int i = 0; i < made->items.count; i++) {
    uint64_t begin;
    const uint64_t bytes = bytes_of(&made->list[i], &begin);
    const unsigned char *data = made->list[i].data;
    for (uint64_t b = 0; b < bytes && same; b++) same = data[b] == content(i, begin + b, step);
  }
  return same;
}
