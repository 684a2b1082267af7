/* np: 1 2 3 4 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "pipeline/base/bf16.h"
#include "sharding/gradients.h"
#include "sharding/tree.h"
#include "tests/common/parallel.h"

/* A toy model: four replicated tensors, one of which never gets a gradient, a table taken through
 * gradients_at and a table given in tiles. Every contribution is a function of (micro-shard,
 * tensor, element), so that the sums are known. */
enum {
  TENSORS = 6,
  UNTOUCHED = 3,
  TABLE = 4,
  TILED = 5,
  V = 100,
  C = 5,
  SLICES = 4,
  SHARDS_MAX = 16
};

static const int64_t sizes[TENSORS] = {7, 1000, 1, 33, V *C, V *C};

static float contribution(int64_t shard, int64_t tensor, int64_t i) {
  const float value = (float)((shard * 41 + tensor * 17 + i * 7) % 97 - 48);
  return value / (float)(3 + (shard + i) % 11) * (i % 5 ? 1.0f : 300.0f);
}

/* Of a second objective, which works against the first. */
static float opposed(int64_t shard, int64_t tensor, int64_t i) {
  return 0.25f * contribution(shard + 5, tensor, i) - contribution(shard, tensor, i);
}

static float rounded(float value) {
  return bf16_to_float(bf16_from_float(value));
}

/* The tree over rounded leaves, every node rounded. */
static float rounded_sum(const float *leaves, int64_t count) {
  if (count == 1) return rounded(leaves[0]);
  const int64_t left = (count + 1) / 2;
  return rounded(rounded_sum(leaves, left) + rounded_sum(leaves + left, count - left));
}

static float expected(int64_t shards, int64_t tensor, int64_t i, enum dtype dtype) {
  float leaves[SHARDS_MAX];
  for (int64_t s = 0; s < shards; s++)
    leaves[s] = tensor == UNTOUCHED ? 0.0f : contribution(s, tensor, i);
  return dtype == DTYPE_BF16 ? rounded_sum(leaves, shards) : tree_sum_floats(leaves, 1, shards);
}

struct toy {
  struct grid grid;
  struct vocab vocab;
  struct zero zero;
  enum dtype dtype;
  struct gradients_tensor tensors[TENSORS];
  struct gradients *gradients;
  struct arena arena;
  int64_t base; /* first element of this rank's rows of a table */
  bool opposes; /* what is added is that of the second objective */
};

static float share(const struct toy *toy, int64_t shard, int64_t tensor, int64_t i) {
  return toy->opposes ? opposed(shard, tensor, i) : contribution(shard, tensor, i);
}

static void describe(struct toy *toy) {
  toy->base = toy->vocab.rows.begin * C;
  for (int i = 0; i < TENSORS; i++) toy->tensors[i] = (struct gradients_tensor){.count = sizes[i]};
  for (int i = TABLE; i <= TILED; i++)
    toy->tensors[i] =
        (struct gradients_tensor){.count = split_count(toy->vocab.rows) * C, .vocab = &toy->vocab};
}

static enum status make(struct toy *toy, struct arena *arena, bool owners) {
  struct zero_tensor costs[TENSORS];
  for (int i = 0; i < TENSORS; i++)
    costs[i] = (struct zero_tensor){(double)sizes[i], toy->tensors[i].vocab != NULL};
  TRY(zero_init(&toy->zero, &toy->grid, costs, TENSORS, arena));
  const struct gradients_setup setup = {.grid = &toy->grid,
                                        .zero = owners ? &toy->zero : NULL,
                                        .tensors = toy->tensors,
                                        .count = TENSORS,
                                        .dtype = toy->dtype,
                                        .keeps = owners};
  return gradients_init(&toy->gradients, &setup, arena);
}

static void open_toy(struct parallel_test *test, struct toy *toy,
                     const struct grid_options *options, bool owners) {
  parallel_ok(test, grid_init(&toy->grid, test->world, options));
  parallel_ok(test, vocab_init(&toy->vocab, &toy->grid.group, V, SLICES));
  describe(toy);
  arena_measure(&toy->arena, "test");
  parallel_ok(test, make(toy, &toy->arena, owners));
  parallel_ok(test, arena_init(&toy->arena, "test", toy->arena.peak));
  parallel_ok(test, make(toy, &toy->arena, owners));
}

static void close_toy(struct toy *toy) {
  gradients_free(toy->gradients);
  arena_free(&toy->arena);
  grid_free(&toy->grid);
}

static enum status add_to(struct toy *toy, int64_t tensor, int64_t member, int64_t shard,
                          int64_t base) {
  float *gradient;
  TRY(gradients_at(&gradient, toy->gradients, tensor, member));
  for (int64_t i = 0; i < toy->tensors[tensor].count; i++)
    gradient[i] += share(toy, shard, tensor, base + i);
  return STATUS_OK;
}

static void give_tiles(struct toy *toy, int64_t member, int64_t shard) {
  enum { TILE = 64 };
  const int64_t count = toy->tensors[TILED].count;
  for (int64_t first = 0; first < count; first += TILE) {
    float tile[TILE];
    const int64_t size = count - first < TILE ? count - first : TILE;
    for (int64_t i = 0; i < size; i++) tile[i] = share(toy, shard, TILED, toy->base + first + i);
    gradients_give(toy->gradients, TILED, member, first, size, tile);
  }
}

static enum status micro_step(struct toy *toy, int64_t j) {
  const int64_t steps = grid_micro_steps(&toy->grid);
  const int64_t group_begin = (toy->grid.world->rank - toy->grid.group.rank) * steps;
  gradients_begin(toy->gradients, j);
  /* A table that is both input and output is added to twice, for all members each time. */
  for (int64_t r = toy->grid.group.size - 1; r >= 0; r--)
    TRY(add_to(toy, TABLE, r, group_begin + r * steps + j, toy->base));
  for (int64_t r = 0; r < toy->grid.group.size; r++) {
    TRY(gradients_done(toy->gradients, TABLE, r));
    give_tiles(toy, r, group_begin + r * steps + j);
    TRY(gradients_done(toy->gradients, TILED, r));
  }
  for (int64_t i = 0; i < UNTOUCHED; i++) TRY(add_to(toy, i, 0, toy->grid.shards.begin + j, 0));
  TRY(gradients_done(toy->gradients, 1, 0));
  return gradients_end(toy->gradients);
}

static enum status step(struct toy *toy) {
  for (int64_t j = 0; j < grid_micro_steps(&toy->grid); j++) TRY(micro_step(toy, j));
  return gradients_finish(toy->gradients);
}

/* Sums of both signs lose digits of their largest part, about 5e3. */
static bool near(float a, float b, enum dtype dtype) {
  return fabsf(a - b) <= (dtype == DTYPE_BF16 ? 200.0f : 1e-3f * (1 + fabsf(b)));
}

static void compare(struct parallel_test *test, struct toy *toy, bool owners) {
  const bool exact = toy->grid.canonical;
  for (int64_t t = 0; t < TENSORS; t++) {
    float values[V * C * 2];
    const int64_t base = toy->tensors[t].vocab ? toy->base : 0;
    if (owners && !zero_owns(&toy->zero, t)) continue;
    const struct gradients_sum sum = gradients_sum(toy->gradients, t);
    gradients_read(values, &sum, 0, toy->tensors[t].count);
    for (int64_t i = 0; i < toy->tensors[t].count; i++) {
      const float wanted = expected(toy->grid.micro_shards, t, base + i, toy->dtype);
      parallel_expect(test, exact ? values[i] == wanted : near(values[i], wanted, toy->dtype));
    }
  }
}

static void run_on_nodes(struct parallel_test *test, int64_t micro_shards, bool canonical,
                         bool owners, enum dtype dtype, int ranks_per_node) {
  for (int64_t group = 1; group <= test->world->size; group++) {
    const struct grid_options options = {group, micro_shards, SLICES, canonical, ranks_per_node};
    if (grid_check(test->world->size, &options) != STATUS_OK) continue;
    struct toy toy = {.dtype = dtype};
    open_toy(test, &toy, &options, owners);
    for (int i = 0; i < 2; i++) {
      parallel_ok(test, step(&toy));
      compare(test, &toy, owners);
    }
    close_toy(&toy);
  }
}

/* On one node, on nodes of one rank and on nodes of two. */
static void run(struct parallel_test *test, int64_t micro_shards, bool canonical, bool owners,
                enum dtype dtype) {
  for (int ranks = 0; ranks <= 2; ranks++)
    run_on_nodes(test, micro_shards, canonical, owners, dtype, ranks);
}

static void canonical_sums(struct parallel_test *test) {
  const int64_t shards[] = {1, 2, 4, 8, 12, 16};
  for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
    for (int narrow = 0; narrow < 2; narrow++)
      run(test, shards[i], true, false, narrow ? DTYPE_BF16 : DTYPE_F32);
}

static void canonical_sums_at_owners(struct parallel_test *test) {
  run(test, 4, true, true, DTYPE_F32);
  run(test, 16, true, true, DTYPE_BF16);
  run(test, test->world->size, true, true, DTYPE_F32);
  run(test, test->world->size, true, true, DTYPE_BF16);
}

static void fast_sums(struct parallel_test *test) {
  run(test, 12, false, false, DTYPE_F32);
  run(test, 12, false, false, DTYPE_BF16);
  run(test, test->world->size, false, true, DTYPE_F32);
}

/* The norm of a world of one rank, made from the expected sums. */
static double serial_norm(int64_t shards) {
  double sum = 0;
  for (int64_t t = 0; t < TENSORS; t++)
    for (int64_t i = 0; i < sizes[t]; i++) sum += pow((double)expected(shards, t, i, DTYPE_F32), 2);
  return sqrt(sum);
}

/* What one rank finds; every admissible number of ranks must find these bits. */
#define NORM_OF_ONE_RANK 0x1.80fd115bb5d56p+15

static void norm_has_the_same_bits(struct parallel_test *test) {
  double first = 0;
  for (int64_t group = 1; group <= test->world->size; group++)
    for (int owners = 0; owners < 2; owners++) {
      const struct grid_options options = {group, 8, SLICES, true, owners};
      if (grid_check(test->world->size, &options) != STATUS_OK) continue;
      struct toy toy = {.dtype = DTYPE_F32};
      double norm = 0, squares[TENSORS] = {0};
      open_toy(test, &toy, &options, owners);
      parallel_ok(test, step(&toy));
      parallel_ok(test, gradients_norm(toy.gradients, &norm, squares));
      if (first == 0) first = norm;
      parallel_expect(test, norm == first);
      parallel_expect(test, squares[UNTOUCHED] == 0 && squares[TABLE] > 0);
      parallel_expect(test, fabs(norm - serial_norm(8)) < 1e-9 * norm);
      close_toy(&toy);
    }
  if (split_power_of_two(test->world->size)) parallel_expect(test, first == NORM_OF_ONE_RANK);
}

/* What the sums of both objectives give in double: <k, g>, <k, k>, <g, g>. */
static void serial_dots(int64_t shards, double dots[3]) {
  for (int64_t t = 0; t < TENSORS; t++)
    for (int64_t i = 0; t != UNTOUCHED && i < sizes[t]; i++) {
      double k = 0, g = 0;
      for (int64_t s = 0; s < shards; s++) k += (double)contribution(s, t, i);
      for (int64_t s = 0; s < shards; s++) g += (double)opposed(s, t, i);
      dots[0] += k * g;
      dots[1] += k * k;
      dots[2] += g * g;
    }
}

/* k + g - min(0, <k, g>) / <k, k> k, its norm squared from the dots. */
static double serial_mended(const double dots[3]) {
  const double keep = dots[0] < 0 ? 1 - dots[0] / dots[1] : 1;
  return dots[2] + 2 * keep * dots[0] + keep * keep * dots[1];
}

/* R-ELA-3: `against` first keeps the contributions and then adds the opposed ones; otherwise the
 * same twice, whose angle is zero. */
static void mend(struct parallel_test *test, bool against, double *first) {
  for (int64_t group = 1; group <= test->world->size; group++) {
    const struct grid_options options = {group, 8, SLICES, true, 0};
    if (grid_check(test->world->size, &options) != STATUS_OK) continue;
    struct toy toy = {.dtype = DTYPE_F32};
    double cosine, norm, dots[3] = {0};
    open_toy(test, &toy, &options, true);
    parallel_ok(test, step(&toy));
    gradients_keep(toy.gradients);
    toy.opposes = against;
    parallel_ok(test, step(&toy));
    parallel_ok(test, gradients_mend(toy.gradients, &cosine));
    parallel_ok(test, gradients_norm(toy.gradients, &norm, NULL));
    serial_dots(8, dots);
    const double wanted = against ? sqrt(serial_mended(dots)) : 2 * sqrt(dots[1]);
    const double angle = against ? dots[0] / sqrt(dots[1] * dots[2]) : 1;
    parallel_expect(test, !against || angle < -0.5);
    parallel_expect(test, fabs(norm - wanted) < 1e-5 * wanted && fabs(cosine - angle) < 1e-6);
    if (*first == 0) *first = norm;
    parallel_expect(test, norm == *first);
    close_toy(&toy);
  }
}

/* What one rank finds. */
#define MENDED_OF_ONE_RANK 0x1.8af03224f903cp+15

static void what_opposes_is_taken_out(struct parallel_test *test) {
  double mended = 0, doubled = 0;
  mend(test, true, &mended);
  mend(test, false, &doubled);
  if (split_power_of_two(test->world->size)) parallel_expect(test, mended == MENDED_OF_ONE_RANK);
}

static void norm_shows_bad_numbers(struct parallel_test *test) {
  struct toy toy = {.dtype = DTYPE_F32};
  double norm = 0;
  float *place;
  const struct grid_options options = {1, test->world->size, 0, false, 0};
  open_toy(test, &toy, &options, true);
  gradients_begin(toy.gradients, 0);
  parallel_ok(test, gradients_at(&place, toy.gradients, 1, 0));
  if (test->world->rank == test->world->size - 1) place[999] = NAN;
  parallel_ok(test, gradients_end(toy.gradients));
  parallel_ok(test, gradients_finish(toy.gradients));
  parallel_ok(test, gradients_norm(toy.gradients, &norm, NULL));
  parallel_expect(test, isnan(norm));
  close_toy(&toy);
}

enum { SMALL = 700, SMALL_COUNT = 40 };

static void be_slow(int rank) {
  const struct timespec pause = {.tv_nsec = rank * 50000};
  if (rank > 0) nanosleep(&pause, NULL);
}

/* Every rank reports many tensors and then waits for the others, as a layer with a collective in
 * its backward pass does: the ranks behind must not need it meanwhile. */
static void report_and_wait(struct parallel_test *test, struct toy *toy) {
  const int rank = test->world->rank;
  gradients_begin(toy->gradients, 0);
  for (int64_t i = 0; i < SMALL; i++) {
    float *place;
    parallel_ok(test, gradients_at(&place, toy->gradients, i, 0));
    for (int64_t j = 0; j < SMALL_COUNT; j++) place[j] += (float)(rank + 1);
    parallel_ok(test, gradients_done(toy->gradients, i, 0));
    be_slow(rank);
  }
  parallel_ok(test, comm_barrier(&toy->grid.group));
  parallel_ok(test, gradients_finish(toy->gradients));
}

static void ranks_ahead_may_wait_elsewhere(struct parallel_test *test) {
  static struct gradients_tensor tensors[SMALL];
  static struct zero_tensor costs[SMALL];
  const int size = test->world->size;
  for (int i = 0; i < 4; i++) {
    const bool owners = i % 2;
    struct toy toy = {.dtype = DTYPE_F32};
    const struct grid_options options = {size, size, 0, split_power_of_two(size), i / 2};
    parallel_ok(test, grid_init(&toy.grid, test->world, &options));
    for (int t = 0; t < SMALL; t++) tensors[t] = (struct gradients_tensor){.count = SMALL_COUNT};
    for (int t = 0; t < SMALL; t++) costs[t] = (struct zero_tensor){.cost = 1};
    parallel_ok(test, arena_init(&toy.arena, "test", 1 << 22));
    parallel_ok(test, zero_init(&toy.zero, &toy.grid, costs, SMALL, &toy.arena));
    /* The first rank owns what comes last: it has nothing to wait for itself. */
    for (int t = 0; t < SMALL; t++) toy.zero.owner[t] = t < SMALL / 2 ? size - 1 : 0;
    const struct gradients_setup setup = {.grid = &toy.grid,
                                          .zero = owners ? &toy.zero : NULL,
                                          .tensors = tensors,
                                          .count = SMALL,
                                          .dtype = toy.dtype,
                                          .in_flight = 100 * SMALL_COUNT};
    parallel_ok(test, gradients_init(&toy.gradients, &setup, &toy.arena));
    report_and_wait(test, &toy);
    for (int64_t t = 0; t < SMALL; t++) {
      if (owners && !zero_owns(&toy.zero, t)) continue;
      const struct gradients_sum sum = gradients_sum(toy.gradients, t);
      parallel_expect(test, ((const float *)sum.values)[7] == (float)(size * (size + 1) / 2));
    }
    close_toy(&toy);
  }
}

int main(void) {
  const struct parallel_case cases[] = {
      {"R-ELA-3 canonical sums: same bits for 1, 2, 4 ranks, every group size", canonical_sums},
      {"R-ELA-3 canonical sums at the owners", canonical_sums_at_owners},
      {"fast sums agree up to rounding, 1 to 4 ranks", fast_sums},
      {"R-ELA-3 global norm: same bits for every layout", norm_has_the_same_bits},
      {"R-MPI-4 ranks that are ahead may wait elsewhere", ranks_ahead_may_wait_elsewhere},
      {"R-ELA-3 gradients of two objectives are mended alike in every layout",
       what_opposes_is_taken_out},
      {"R-NUM-1 the norm shows a NaN of one rank", norm_shows_bad_numbers},
  };
  return parallel_main(cases, (int)(sizeof cases / sizeof *cases));
}
