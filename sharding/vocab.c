#include "sharding/vocab.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum status vocab_init(struct vocab *vocab, struct comm *group, int64_t size, int64_t slices) {
  *vocab = (struct vocab){.group = group, .size = size, .slices = slices};
  CHECK(size > 0, STATUS_MISMATCH, "a vocabulary of %" PRId64 " rows; expected at least 1", size);
  CHECK(1 <= slices && slices <= VOCAB_SLICES_MAX, STATUS_MISMATCH,
        "slices = %" PRId64 " of the vocabulary; expected 1 to %d", slices, VOCAB_SLICES_MAX);
  const int members = vocab_members(vocab);
  CHECK(slices >= members, STATUS_MISMATCH,
        "slices = %" PRId64 " of the vocabulary over a group of %d ranks; expected at least one "
        "slice a rank",
        slices, members);
  for (int64_t s = 0; s < slices; s++)
    vocab->borders[s + 1] = split_blocks(size, VOCAB_ROW_BLOCK, slices, s).end;
  const struct split own = split_even(slices, members, vocab_member(vocab));
  vocab->first_slice = own.begin;
  vocab->end_slice = own.end;
  vocab->rows = vocab_rows_of(vocab, vocab_member(vocab));
  return STATUS_OK;
}

struct split vocab_slice(const struct vocab *vocab, int64_t slice) {
  return (struct split){vocab->borders[slice], vocab->borders[slice + 1]};
}

struct split vocab_rows_of(const struct vocab *vocab, int64_t rank) {
  const struct split slices = split_even(vocab->slices, vocab_members(vocab), rank);
  return (struct split){vocab->borders[slices.begin], vocab->borders[slices.end]};
}

int64_t vocab_owner(const struct vocab *vocab, int64_t id) {
  const int64_t slice = split_owner(vocab->borders, vocab->slices, id);
  return split_even_owner(vocab->slices, vocab_members(vocab), slice);
}

enum status vocab_counts(struct vocab *vocab, int64_t *counts, int64_t *total, int64_t own) {
  counts[vocab_member(vocab)] = *total = own;
  if (!vocab->group) return STATUS_OK;
  TRY(comm_allgather(vocab->group, counts, &own, sizeof own));
  *total = 0;
  for (int r = 0; r < vocab->group->size; r++) *total += counts[r];
  return STATUS_OK;
}

enum status vocab_gather(struct vocab *vocab, void *all, const void *own, const int64_t *counts,
                         int64_t row_bytes) {
  int64_t bytes[VOCAB_SLICES_MAX];
  if (!vocab->group) {
    memmove(all, own, (size_t)(counts[0] * row_bytes));
    return STATUS_OK;
  }
  for (int r = 0; r < vocab->group->size; r++) bytes[r] = counts[r] * row_bytes;
  return comm_allgatherv(vocab->group, all, own, bytes);
}

enum status vocab_scatter(struct vocab *vocab, void *own, void *partial, const int64_t *counts,
                          int64_t C, enum dtype dtype) {
  int64_t borders[VOCAB_SLICES_MAX + 1] = {0};
  struct comm *group = vocab->group;
  if (!group) {
    memmove(own, partial, (size_t)(counts[0] * C) * dtype_bytes(dtype));
    return STATUS_OK;
  }
  for (int r = 0; r < group->size; r++) borders[r + 1] = borders[r] + counts[r] * C;
  if (split_power_of_two(group->size))
    return comm_tree_scatter(group, own, partial, borders, dtype);
  return comm_reduce_scatter(group, own, partial, borders, dtype);
}
