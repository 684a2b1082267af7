/* np: 1 2 3 4 */
#include "sharding/vocab.h"

#include <math.h>
#include <string.h>

#include "sharding/grid.h"
#include "sharding/tree.h"
#include "tests/common/parallel.h"

/* A head over V rows of width C, with N tokens in all, the tokens dealt unevenly. The slices hold
 * 16-row blocks: 3 3 3 2 blocks, the last one 11 rows short of full. */
enum { V = 165, C = 6, SLICES = 4, N = 11, OWN_MAX = N };

static double table(int64_t row, int64_t c) {
  return (double)((row * 29 + c * 13) % 31 - 15) / 16;
}

static double hidden(int64_t token, int64_t c) {
  return (double)((token * 7 + c * 5) % 17 - 8) / 4;
}

static double logit(int64_t token, int64_t row) {
  double sum = token == 3 && row < 48 ? -INFINITY : 0; /* a slice without any finite logit */
  for (int64_t c = 0; c < C; c++) sum += hidden(token, c) * table(row, c);
  return sum;
}

static int64_t target(int64_t token) {
  return token * 53 % V;
}

/* Member r of `size` has these tokens. */
static struct split tokens_of(int size, int rank) {
  const int64_t borders[5][5] = {{0}, {0, N}, {0, 3, N}, {0, 3, 3, N}, {0, 1, 6, 6, N}};
  return (struct split){borders[size][rank], borders[size][rank + 1]};
}

struct results {
  double maximum[SLICES * N], sum[SLICES * N], squares[SLICES * N], weighted[SLICES * N],
      target[SLICES * N];
};

/* Statistics of one slice, as a layer makes them. */
static void make_slice(struct results *r, int64_t place, struct split rows) {
  for (int64_t i = 0; i < N; i++) {
    const int64_t at = place * N + i;
    r->maximum[at] = -INFINITY;
    for (int64_t v = rows.begin; v < rows.end; v++)
      r->maximum[at] = fmax(r->maximum[at], logit(i, v));
    r->sum[at] = r->squares[at] = r->weighted[at] = 0;
    for (int64_t v = rows.begin; v < rows.end && !isinf(r->maximum[at]); v++) {
      const double e = exp(logit(i, v) - r->maximum[at]);
      r->sum[at] += e;
      r->squares[at] += e * e;
      r->weighted[at] += (double)(v % 5) * e;
    }
    r->target[at] = split_holds(rows, target(i)) ? logit(i, target(i)) : 0;
  }
}

static struct vocab_statistics statistics_of(struct results *r) {
  return (struct vocab_statistics){.maximum = r->maximum,
                                   .sum = r->sum,
                                   .sum_squares = r->squares,
                                   .scaled = {r->weighted},
                                   .plain = {r->target}};
}

struct group {
  struct comm comm;
  struct vocab vocab;
  struct arena scratch;
};

static void open_group(struct parallel_test *test, struct group *group, struct comm *parent,
                       int color) {
  parallel_ok(test, comm_split(&group->comm, parent, color));
  parallel_ok(test, vocab_init(&group->vocab, &group->comm, V, SLICES));
  parallel_ok(test, arena_init(&group->scratch, "test", 1 << 20));
}

static void close_group(struct group *group) {
  arena_free(&group->scratch);
  comm_free(&group->comm);
}

static void combine(struct parallel_test *test, struct group *group, struct results *r) {
  struct arena measured;
  const struct vocab_statistics statistics = statistics_of(r);
  for (int64_t s = group->vocab.first_slice; s < group->vocab.end_slice; s++)
    make_slice(r, s - group->vocab.first_slice, vocab_slice(&group->vocab, s));
  arena_measure(&measured, "measured");
  parallel_ok(test, vocab_combine(&group->vocab, &statistics, N, &measured));
  parallel_ok(test, vocab_combine(&group->vocab, &statistics, N, &group->scratch));
  parallel_expect(test, measured.peak == group->scratch.peak);
}

static bool close_to(double a, double b) {
  return fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

static void compare_with_whole(struct parallel_test *test, const struct results *r) {
  static struct results whole;
  make_slice(&whole, 0, (struct split){0, V});
  for (int64_t i = 0; i < N; i++) {
    parallel_expect(test, r->maximum[i] == whole.maximum[i]);
    parallel_expect(test, close_to(r->sum[i], whole.sum[i]));
    parallel_expect(test, close_to(r->squares[i], whole.squares[i]));
    parallel_expect(test, close_to(r->weighted[i], whole.weighted[i]));
    parallel_expect(test, r->target[i] == whole.target[i]);
  }
}

/* Also against a group of one rank, bit by bit. */
static void statistics_have_the_same_bits(struct parallel_test *test) {
  static struct results r, alone;
  struct group group = {0}, single = {0};
  open_group(test, &group, test->world, 0);
  open_group(test, &single, test->world, test->world->rank);
  combine(test, &group, &r);
  combine(test, &single, &alone);
  compare_with_whole(test, &r);
  parallel_expect(test, memcmp(r.maximum, alone.maximum, N * sizeof(double)) == 0);
  parallel_expect(test, memcmp(r.sum, alone.sum, N * sizeof(double)) == 0);
  parallel_expect(test, memcmp(r.squares, alone.squares, N * sizeof(double)) == 0);
  parallel_expect(test, memcmp(r.weighted, alone.weighted, N * sizeof(double)) == 0);
  close_group(&single);
  close_group(&group);
}

static void slices_do_not_depend_on_ranks(struct parallel_test *test) {
  struct group group = {0};
  const int64_t borders[] = {0, 48, 96, 144, V};
  open_group(test, &group, test->world, 0);
  parallel_expect(test, memcmp(group.vocab.borders, borders, sizeof borders) == 0);
  for (int64_t id = 0; id < V; id++)
    parallel_expect(test,
                    split_holds(vocab_rows_of(&group.vocab, vocab_owner(&group.vocab, id)), id));
  parallel_expect(test, vocab_init(&group.vocab, &group.comm, V, 300) == STATUS_MISMATCH);
  parallel_expect(test, vocab_init(&group.vocab, &group.comm, 0, 4) == STATUS_MISMATCH);
  parallel_ok(test, vocab_init(&group.vocab, &group.comm, 3, 4)); /* empty slices */
  parallel_expect(test, vocab_owner(&group.vocab, 2) == 0);
  close_group(&group);
}

static void gathers_blocks_by_member(struct parallel_test *test) {
  struct group group = {0};
  int64_t counts[4], total = 0;
  float own[OWN_MAX][C], all[N][C];
  open_group(test, &group, test->world, 0);
  const struct split mine = tokens_of(group.comm.size, group.comm.rank);
  for (int64_t i = mine.begin; i < mine.end; i++)
    for (int64_t c = 0; c < C; c++) own[i - mine.begin][c] = (float)hidden(i, c);
  parallel_ok(test, vocab_counts(&group.vocab, counts, &total, split_count(mine)));
  parallel_ok(test, vocab_gather(&group.vocab, all, own, counts, (int64_t)sizeof own[0]));
  parallel_expect(test, total == N);
  for (int64_t i = 0; i < N; i++)
    for (int64_t c = 0; c < C; c++) parallel_expect(test, all[i][c] == (float)hidden(i, c));
  close_group(&group);
}

/* softmax x table of one slice, unnormalised and relative to the slice's maximum. */
static void make_mixture(float *mixture, const double *maximum, struct split rows) {
  for (int64_t i = 0; i < N; i++)
    for (int64_t c = 0; c < C; c++) {
      float sum = 0;
      for (int64_t v = rows.begin; v < rows.end && !isinf(maximum[i]); v++)
        sum += (float)(exp(logit(i, v) - maximum[i]) * table(v, c));
      mixture[i * C + c] = sum;
    }
}

/* Turns a slice's sum of e^(l - maximum) E into its share of the whole. */
static void rescale(float *rows, const double *maximum, const double *reference) {
  for (int64_t i = 0; i < N; i++) {
    const float scale =
        isinf(maximum[i]) && maximum[i] < 0 ? 0.0f : (float)exp(maximum[i] - reference[i]);
    float *row = rows + i * C;
    for (int64_t c = 0; c < C; c++) row[c] *= scale;
  }
}

/* own[n][C] = this member's rows of softmax x table, through all steps. */
static void mix(struct parallel_test *test, struct group *group, float *own) {
  static struct results r;
  static float levels[2][N * C], mixture[N * C];
  static double maximum[SLICES * N], normaliser[N];
  struct vocab *vocab = &group->vocab;
  int64_t counts[4], total = 0;
  for (int64_t s = vocab->first_slice; s < vocab->end_slice; s++)
    make_slice(&r, s - vocab->first_slice, vocab_slice(vocab, s));
  memcpy(maximum, r.maximum, sizeof maximum);
  combine(test, group, &r);
  for (int64_t i = 0; i < N; i++) normaliser[i] = r.maximum[i] + log(r.sum[i]);
  const struct tree_floats tree = {levels[0], N * C, vocab_slices_local(vocab)};
  for (int64_t s = 0; s < tree.leaves; s++) {
    make_mixture(mixture, maximum + s * N, vocab_slice(vocab, vocab->first_slice + s));
    rescale(mixture, maximum + s * N, normaliser);
    tree_add_floats(&tree, s, 0, N * C, mixture);
  }
  const struct split mine = tokens_of(group->comm.size, group->comm.rank);
  parallel_ok(test, vocab_counts(vocab, counts, &total, split_count(mine)));
  parallel_ok(test, vocab_scatter(vocab, own, levels[0], counts, C, DTYPE_F32));
}

static void mixtures_have_the_same_bits(struct parallel_test *test) {
  static float own[OWN_MAX * C], alone[OWN_MAX * C];
  struct group group = {0}, single = {0};
  open_group(test, &group, test->world, 0);
  open_group(test, &single, test->world, test->world->rank);
  mix(test, &group, own);
  mix(test, &single, alone);
  const struct split mine = tokens_of(group.comm.size, group.comm.rank);
  const bool exact = split_power_of_two(group.comm.size);
  for (int64_t i = 0; i < split_count(mine) * C; i++) {
    const float wanted = alone[mine.begin * C + i];
    parallel_expect(test, exact ? own[i] == wanted : fabsf(own[i] - wanted) < 1e-6f);
  }
  for (int64_t i = 0; i < N; i++) {
    double sum = 0, mass = 0;
    for (int64_t v = 0; v < V; v++) {
      mass += exp(logit(i, v));
      sum += exp(logit(i, v)) * table(v, 1);
    }
    parallel_expect(test, fabs(alone[i * C + 1] - sum / mass) < 1e-6);
  }
  close_group(&single);
  close_group(&group);
}

static void lookup(struct parallel_test *test, struct group *group, int64_t n, const int64_t *ids) {
  static uint16_t rows[V][C], own[40][C];
  const struct split held = group->vocab.rows;
  struct arena measured;
  arena_measure(&measured, "measured");
  for (int64_t v = held.begin; v < held.end; v++)
    for (int64_t c = 0; c < C; c++) rows[v - held.begin][c] = (uint16_t)(v * 10 + c);
  parallel_ok(test,
              vocab_lookup(&group->vocab, own, rows, ids, n, (int64_t)sizeof rows[0], &measured));
  parallel_ok(test, vocab_lookup(&group->vocab, own, rows, ids, n, (int64_t)sizeof rows[0],
                                 &group->scratch));
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < C; c++) parallel_expect(test, own[i][c] == ids[i] * 10 + c);
}

static void lookups_are_exact(struct parallel_test *test) {
  struct group group = {0};
  int64_t ids[40];
  open_group(test, &group, test->world, 0);
  for (int64_t i = 0; i < 40; i++) ids[i] = (i * 37 + group.comm.rank * 11) % V;
  lookup(test, &group, 40, ids);
  lookup(test, &group, group.comm.rank == 0 ? 0 : 7, ids);
  ids[5] = V;
  const int64_t n = group.comm.rank == group.comm.size - 1 ? 40 : 3;
  parallel_expect(test, vocab_lookup(&group.vocab, ids, ids, ids, n, 0, &group.scratch) ==
                            STATUS_DAMAGED);
  parallel_expect(test, strstr(error_message(), "token 5 of 40 is 165") != NULL);
  close_group(&group);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"slices depend on the vocabulary only; empty slices", slices_do_not_depend_on_ranks},
      {"hidden states are gathered in blocks by member", gathers_blocks_by_member},
      {"R-VOC-3 statistics: same bits for 1 to 4 ranks, uneven slices",
       statistics_have_the_same_bits},
      {"R-VOC-3 softmax x table: same bits for 1, 2, 4 ranks", mixtures_have_the_same_bits},
      {"lookups are exact; bad ids are refused by all", lookups_are_exact},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
