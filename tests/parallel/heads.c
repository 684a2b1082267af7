/* np: 1 2 4 */
/* The heads of a vocabulary group give the bits of one process (R-ELA-3, R-VOC-3). */
#include <string.h>

#include "stages/model/layers/head.h"
#include "stages/model/layers/head_distill.h"
#include "stages/model/layers/head_expectation.h"
#include "stages/model/layers/head_sample.h"
#include "stages/model/layers/vocab_embedding.h"
#include "tests/common/parallel.h"

enum { V = 165, SLICES = 4, C = 6, N = 9, SHARDS = 4, DIVERGENCES = 3 };

/* What is compared for one micro-shard. */
struct results {
  double loss[N], lse[N], squares[N], smoothing[N], penalty[N];
  double divergence[DIVERGENCES][N], distance[DIVERGENCES][N];
  int32_t argmax[N], drawn[N];
  float expectation[N * C], looked_up[N * C], dx[N * C];
};

/* A group's member, or one process alone. */
struct side {
  struct parallel_test *test;
  struct kernels kernels;
  struct arena declarations, arena, records, memory;
  struct params params;
  struct vocab vocab;
  struct param *w, *table;
  float *dw[SHARDS], *dtable[SHARDS]; /* of each micro-shard: [rows, C] */
  void *members[2][SHARDS];
  struct results results[SHARDS];
};

static struct side alone, member;

static void open_side(struct side *side, struct parallel_test *test, struct comm *group) {
  side->test = test;
  parallel_ok(test, kernels_open(&side->kernels, "cpu", DTYPE_F32));
  parallel_ok(test, arena_init(&side->declarations, "declarations", 1 << 20));
  parallel_ok(test, arena_init(&side->records, "records", 1 << 20));
  parallel_ok(test, arena_init(&side->arena, "tape", 64 << 20));
  parallel_ok(test, arena_init(&side->memory, "params", 1 << 20));
  parallel_ok(test, vocab_init(&side->vocab, group, V, SLICES));
  params_init(&side->params, &side->declarations);
  side->w = params_add_table(&side->params, V, C, PARAM_NORMAL, 1, "w");
  side->table = params_add_table(&side->params, V, C, PARAM_NORMAL, 1, "table");
  const int64_t begin = side->vocab.rows.begin, count = split_count(side->vocab.rows);
  param_slice(side->w, begin, count);
  param_slice(side->table, begin, count);
  params_bind(&side->params, &side->memory, DTYPE_F32, false);
  params_initialise(&side->params, DTYPE_F32, 3);
  for (int i = 0; i < SHARDS; i++) {
    side->dw[i] = arena_take_zeroed(&side->memory, (size_t)(count * C) * sizeof(float));
    side->dtable[i] = arena_take_zeroed(&side->memory, (size_t)(count * C) * sizeof(float));
  }
}

static void close_side(struct side *side) {
  arena_free(&side->declarations);
  arena_free(&side->records);
  arena_free(&side->arena);
  arena_free(&side->memory);
}

/* The gradients of each member's tokens go to the arrays of its micro-shard. */
static void aim(struct side *side, int64_t step) {
  const int members = vocab_members(&side->vocab), steps = SHARDS / members;
  for (int r = 0; r < members; r++) {
    side->members[0][r] = side->dw[r * steps + step];
    side->members[1][r] = side->dtable[r * steps + step];
  }
  side->w->member_gradients = side->members[0];
  side->table->member_gradients = side->members[1];
  side->w->gradient = side->members[0][0];
}

static struct value *states(struct tape *tape, int64_t shard, const char *purpose) {
  float source[N * C];
  random_fill_normal(source, N * C, random_open(5, purpose, (uint64_t)shard, 0), 0);
  struct value *x = tape_input(tape, source, N, C);
  x->needs_gradient = true;
  return x;
}

static void run_losses(struct side *side, struct tape *tape, int64_t shard, struct value *x,
                       const int32_t *targets, const float *weight) {
  struct results *results = &side->results[shard];
  static double omega[N];
  for (int i = 0; i < N; i++) omega[i] = i / (double)N;
  const struct head head = {.vocab = &side->vocab,
                            .w = side->w,
                            .targets = targets,
                            .weight = weight,
                            .smoothing = 0.1,
                            .log_sum_exp_penalty = 0.01};
  head_forward(tape,
               &(struct head_result){.loss = results->loss,
                                     .log_sum_exp = results->lse,
                                     .square_sum = results->squares,
                                     .smoothing = results->smoothing,
                                     .penalty = results->penalty,
                                     .argmax = results->argmax},
               x, &head);
  const struct head_teacher teacher = {side->w, states(tape, shard, "first"),
                                       states(tape, shard, "second"), omega, NULL};
  for (int kind = 0; kind < DIVERGENCES; kind++)
    head_distill_forward(
        tape, &(struct head_distill_result){results->divergence[kind], results->distance[kind]}, x,
        &head, &teacher, (enum divergence)kind);
}

static void run_draws(struct side *side, struct tape *tape, int64_t shard, struct value *x) {
  struct results *results = &side->results[shard];
  const struct random_stream stream = random_open(1, "draw", (uint64_t)shard, 0);
  const struct head head = {.vocab = &side->vocab, .w = side->w};
  head_sample(tape, results->drawn, x, &head, (struct head_law){1.3, 0.7}, &stream, N);
  tape_output(tape, results->expectation, head_expectation(tape, x, &head, side->table));
}

static void run_shard(struct side *side, int64_t shard) {
  struct tape tape;
  int32_t ids[N], targets[N];
  float weight[N];
  for (int64_t i = 0; i < N; i++) {
    ids[i] = (int32_t)((shard * 31 + i * i * 17) % V);
    targets[i] = i == 4 ? -1 : (int32_t)((shard * 7 + i * 53) % V);
    weight[i] = (float)((shard + i) % 4) * 0.5f; /* another number of tokens in each shard */
  }
  arena_reset(&side->arena, 0);
  arena_reset(&side->records, 0);
  tape_init(&tape, &side->kernels, &side->arena, &side->records);
  struct value *x = states(&tape, shard, "x");
  struct value *rows = vocab_embedding_forward(&tape, &side->vocab, ids, N, side->table);
  tape_output(&tape, side->results[shard].looked_up, rows);
  run_losses(side, &tape, shard, x, targets, weight);
  run_losses(side, &tape, shard, rows, targets, weight);
  run_draws(side, &tape, shard, x);
  parallel_ok(side->test, tape_backward(&tape, NULL, NULL));
  memcpy(side->results[shard].dx, x->gradient, sizeof side->results[shard].dx);
}

/* A gradient of every micro-shard reaches the table. */
static bool is_filled(const float *rows, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (rows[i] != 0) return true;
  return false;
}

static void compare_rows(struct parallel_test *test, float *const *whole, float *const *sliced) {
  const size_t bytes = (size_t)(split_count(member.vocab.rows) * C) * sizeof(float);
  for (int i = 0; i < SHARDS; i++) {
    const float *rows = whole[i] + member.vocab.rows.begin * C;
    parallel_expect(test, is_filled(whole[i], V * C));
    parallel_expect(test, memcmp(rows, sliced[i], bytes) == 0);
  }
}

static void same_bits_for_every_group(struct parallel_test *test) {
  struct comm group;
  parallel_ok(test, comm_split(&group, test->world, 0));
  open_side(&alone, test, NULL);
  open_side(&member, test, &group);
  for (int64_t shard = 0; shard < SHARDS; shard++) {
    aim(&alone, 0);
    alone.members[0][0] = alone.dw[shard];
    alone.members[1][0] = alone.dtable[shard];
    run_shard(&alone, shard);
  }
  const int64_t steps = SHARDS / test->world->size;
  for (int64_t step = 0; step < steps; step++) {
    const int64_t shard = test->world->rank * steps + step;
    aim(&member, step);
    run_shard(&member, shard);
    parallel_expect(
        test, memcmp(&alone.results[shard], &member.results[shard], sizeof(struct results)) == 0);
  }
  compare_rows(test, alone.dw, member.dw);
  compare_rows(test, alone.dtable, member.dtable);
  close_side(&alone);
  close_side(&member);
  comm_free(&group);
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-ELA-3 heads and lookups have the same bits for every group size",
       same_bits_for_every_group},
  };
  return parallel_main(cases, 1);
}
