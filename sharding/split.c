#include "sharding/split.h"

#include <inttypes.h>

struct split split_even(int64_t items, int64_t parts, int64_t part) {
  const int64_t base = items / parts;
  const int64_t larger = items % parts;
  const int64_t begin = part * base + (part < larger ? part : larger);
  return (struct split){begin, begin + base + (part < larger)};
}

int64_t split_even_owner(int64_t items, int64_t parts, int64_t index) {
  const int64_t base = items / parts;
  const int64_t larger = items % parts;
  const int64_t in_larger = larger * (base + 1);
  if (index < in_larger) return index / (base + 1);
  return larger + (index - in_larger) / base;
}

struct split split_blocks(int64_t items, int64_t block, int64_t parts, int64_t part) {
  const struct split blocks = split_even((items + block - 1) / block, parts, part);
  const int64_t begin = blocks.begin * block;
  const int64_t end = blocks.end * block;
  return (struct split){begin < items ? begin : items, end < items ? end : items};
}

int64_t split_owner(const int64_t *borders, int64_t parts, int64_t index) {
  int64_t low = 0;
  int64_t high = parts;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (borders[middle] <= index)
      low = middle;
    else
      high = middle;
  }
  return low;
}

struct split split_overlap(struct split a, struct split b) {
  const int64_t begin = a.begin > b.begin ? a.begin : b.begin;
  const int64_t end = a.end < b.end ? a.end : b.end;
  return (struct split){begin, end > begin ? end : begin};
}

bool split_power_of_two(int64_t count) {
  return count > 0 && (count & (count - 1)) == 0;
}

bool split_admissible(int64_t ranks, int64_t items) {
  return split_power_of_two(ranks) && items > 0 && items % ranks == 0;
}

enum status split_list_admissible(struct text *list, int64_t items) {
  for (int64_t ranks = 1; split_admissible(ranks, items); ranks *= 2)
    TRY(text_format(list, "%s%" PRId64, ranks > 1 ? ", " : "", ranks));
  return STATUS_OK;
}

enum status split_check_admissible(const char *what, int64_t ranks, int64_t items) {
  if (split_admissible(ranks, items)) return STATUS_OK;
  struct text list = {0};
  const enum status status = split_list_admissible(&list, items);
  if (status == STATUS_OK)
    error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__,
                "%s = %" PRId64 " does not admit %" PRId64 " ranks in canonical mode; it admits %s",
                what, items, ranks, list.length ? list.bytes : "none");
  text_free(&list);
  return status == STATUS_OK ? STATUS_MISMATCH : status;
}
