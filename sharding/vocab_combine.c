#include <math.h>
#include <string.h>

#include "sharding/vocab.h"

enum { KINDS_MAX = 11 }; /* maximum, sum, sum_squares, 4 scaled, 4 plain */

enum rule { RULE_MAXIMUM, RULE_PLAIN, RULE_SCALED, RULE_SCALED_TWICE };

struct statistic {
  enum rule rule;
  double *local; /* [slices_local][N], the caller's */
  double *all;   /* [slices][N] */
};

struct node {
  int64_t a, b; /* offsets of the left and right child's first values */
  int64_t N;
};

static void add_statistic(struct statistic *list, int64_t *count, enum rule rule, double *local) {
  if (local) list[(*count)++] = (struct statistic){.rule = rule, .local = local};
}

/* The maximum comes last: the others are rescaled by what it was. */
static int64_t list_statistics(struct statistic *list, const struct vocab_statistics *statistics) {
  int64_t count = 0;
  add_statistic(list, &count, RULE_SCALED, statistics->sum);
  add_statistic(list, &count, RULE_SCALED_TWICE, statistics->sum_squares);
  for (int i = 0; i < 4; i++) add_statistic(list, &count, RULE_SCALED, statistics->scaled[i]);
  for (int i = 0; i < 4; i++) add_statistic(list, &count, RULE_PLAIN, statistics->plain[i]);
  add_statistic(list, &count, RULE_MAXIMUM, statistics->maximum);
  return count;
}

/* e^(maximum - larger), 0 for a side without any finite logit. */
static double weight(double maximum, double larger, enum rule rule) {
  if (isinf(maximum) && maximum < 0) return 0;
  const double scale = exp(maximum - larger);
  return rule == RULE_SCALED_TWICE ? scale * scale : scale;
}

static double larger(double a, double b) {
  return a > b || isnan(a) ? a : b;
}

static void merge(const struct statistic *statistic, const double *maximum, struct node node) {
  double *a = statistic->all + node.a;
  const double *b = statistic->all + node.b;
  for (int64_t i = 0; i < node.N; i++) {
    const double left = maximum[node.a + i];
    const double right = maximum[node.b + i];
    const double most = larger(left, right);
    if (statistic->rule == RULE_MAXIMUM)
      a[i] = most;
    else if (statistic->rule == RULE_PLAIN)
      a[i] += b[i];
    else
      a[i] =
          a[i] * weight(left, most, statistic->rule) + b[i] * weight(right, most, statistic->rule);
  }
}

static void combine(const struct statistic *list, int64_t count, int64_t first, int64_t slices,
                    int64_t N) {
  if (slices <= 1) return;
  const int64_t left = (slices + 1) / 2;
  const struct node node = {first * N, (first + left) * N, N};
  combine(list, count, first, left, N);
  combine(list, count, first + left, slices - left, N);
  for (int64_t i = 0; i < count; i++) merge(&list[i], list[count - 1].all, node);
}

static enum status gather(struct vocab *vocab, const struct statistic *statistic, int64_t N) {
  int64_t counts[VOCAB_SLICES_MAX];
  for (int r = 0; r < vocab_members(vocab); r++)
    counts[r] = split_count(split_even(vocab->slices, vocab_members(vocab), r));
  return vocab_gather(vocab, statistic->all, statistic->local, counts, N * (int64_t)sizeof(double));
}

enum status vocab_combine(struct vocab *vocab, const struct vocab_statistics *statistics, int64_t N,
                          struct arena *scratch) {
  struct statistic list[KINDS_MAX];
  const int64_t count = list_statistics(list, statistics);
  const size_t mark = arena_mark(scratch);
  for (int64_t i = 0; i < count; i++)
    list[i].all = arena_take(scratch, (size_t)(vocab->slices * N) * sizeof(double));
  if (!arena_is_measuring(scratch)) {
    for (int64_t i = 0; i < count; i++) TRY(gather(vocab, &list[i], N));
    combine(list, count, 0, vocab->slices, N);
    for (int64_t i = 0; i < count; i++)
      memcpy(list[i].local, list[i].all, (size_t)N * sizeof(double));
  }
  arena_reset(scratch, mark);
  return STATUS_OK;
}
