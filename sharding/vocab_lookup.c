#include <inttypes.h>
#include <string.h>

#include "sharding/vocab.h"

struct lookup {
  struct vocab *vocab;
  const char *table;
  int64_t row_bytes;
  int64_t n;
  int64_t *order;  /* [n] positions of the own ids, by the member that holds the row */
  int64_t *wanted; /* [n] table rows of the holder, in that order */
  int64_t starts[VOCAB_SLICES_MAX + 1]; /* member r's part of `order` */
  int64_t *asked;                       /* [most] rows that a member asks for */
  char *reply;                          /* [most] rows for that member */
  char *received;                       /* [n] rows from one member */
};

static enum status check_ids(const struct vocab *vocab, const int64_t *ids, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    CHECK(0 <= ids[i] && ids[i] < vocab->size, STATUS_DAMAGED,
          "token %" PRId64 " of %" PRId64 " is %" PRId64 "; the vocabulary has ids 0 to %" PRId64,
          i, n, ids[i], vocab->size - 1);
  return STATUS_OK;
}

/* Sorts positions by the member that holds their row; stable. */
static void sort_by_owner(struct lookup *lookup, const int64_t *ids) {
  int64_t next[VOCAB_SLICES_MAX];
  memset(lookup->starts, 0, sizeof lookup->starts);
  for (int64_t i = 0; i < lookup->n; i++) lookup->starts[vocab_owner(lookup->vocab, ids[i]) + 1]++;
  for (int r = 0; r < vocab_members(lookup->vocab); r++) lookup->starts[r + 1] += lookup->starts[r];
  memcpy(next, lookup->starts, sizeof next);
  for (int64_t i = 0; i < lookup->n; i++) {
    const int64_t owner = vocab_owner(lookup->vocab, ids[i]);
    const int64_t place = next[owner]++;
    lookup->order[place] = i;
    lookup->wanted[place] = ids[i] - vocab_rows_of(lookup->vocab, owner).begin;
  }
}

static void copy_rows(char *rows, const char *table, const int64_t *wanted, int64_t count,
                      int64_t row_bytes) {
  for (int64_t i = 0; i < count; i++)
    memcpy(rows + i * row_bytes, table + wanted[i] * row_bytes, (size_t)row_bytes);
}

static void place_rows(const struct lookup *lookup, char *own, const char *rows, int member) {
  const int64_t row_bytes = lookup->row_bytes;
  for (int64_t i = lookup->starts[member]; i < lookup->starts[member + 1]; i++, rows += row_bytes)
    memcpy(own + lookup->order[i] * row_bytes, rows, (size_t)row_bytes);
}

static int64_t wanted_from(const struct lookup *lookup, int member) {
  return lookup->starts[member + 1] - lookup->starts[member];
}

/* In step k each member asks the k-th next one and answers the k-th previous one. */
static enum status ask_and_answer(struct lookup *lookup, char *own, int to, int from) {
  struct comm *group = lookup->vocab->group;
  const int64_t row_bytes = lookup->row_bytes;
  int64_t asking = wanted_from(lookup, to);
  int64_t asked = 0;
  const struct comm_part count = {&asking, sizeof asking};
  const struct comm_part count_of_other = {&asked, sizeof asked};
  TRY(comm_exchange(group, to, count, from, count_of_other));
  const struct comm_part ids = {lookup->wanted + lookup->starts[to],
                                asking * (int64_t)sizeof asking};
  TRY(comm_exchange(group, to, ids, from,
                    (struct comm_part){lookup->asked, asked * (int64_t)sizeof asked}));
  copy_rows(lookup->reply, lookup->table, lookup->asked, asked, row_bytes);
  TRY(comm_exchange(group, from, (struct comm_part){lookup->reply, asked * row_bytes}, to,
                    (struct comm_part){lookup->received, asking * row_bytes}));
  place_rows(lookup, own, lookup->received, to);
  return STATUS_OK;
}

static enum status run(struct lookup *lookup, char *own, const int64_t *ids) {
  const int members = vocab_members(lookup->vocab), member = vocab_member(lookup->vocab);
  sort_by_owner(lookup, ids);
  const int64_t *held = lookup->wanted + lookup->starts[member];
  copy_rows(lookup->received, lookup->table, held, wanted_from(lookup, member), lookup->row_bytes);
  place_rows(lookup, own, lookup->received, member);
  for (int k = 1; k < members; k++)
    TRY(ask_and_answer(lookup, own, (member + k) % members, (member - k + members) % members));
  return STATUS_OK;
}

enum status vocab_lookup(struct vocab *vocab, void *own, const void *table, const int64_t *ids,
                         int64_t n, int64_t row_bytes, struct arena *scratch) {
  struct lookup lookup = {.vocab = vocab, .table = table, .row_bytes = row_bytes, .n = n};
  const size_t mark = arena_mark(scratch);
  int64_t most = n;
  if (!arena_is_measuring(scratch)) {
    const enum status status = check_ids(vocab, ids, n);
    TRY(vocab->group ? comm_agree(vocab->group, status) : status);
    if (vocab->group) TRY(comm_allreduce(vocab->group, &most, 1, DTYPE_I64, COMM_MAX));
  }
  lookup.order = arena_take(scratch, (size_t)n * sizeof *lookup.order);
  lookup.wanted = arena_take(scratch, (size_t)n * sizeof *lookup.wanted);
  lookup.asked = arena_take(scratch, (size_t)most * sizeof *lookup.asked);
  lookup.reply = arena_take(scratch, (size_t)(most * row_bytes));
  lookup.received = arena_take(scratch, (size_t)(n * row_bytes));
  if (!arena_is_measuring(scratch)) TRY(run(&lookup, own, ids));
  arena_reset(scratch, mark);
  return STATUS_OK;
}
