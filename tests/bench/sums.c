/* np: 2
 * What canonical sums cost: the gradients of a step of 4 micro steps a rank, 32 Mi elements, made,
 * added over micro-shards and summed over ranks, against fast mode in the same run. GB/s counts the
 * array once a step. Rows: name,value,unit,ratio,against.
 */
#include <stdlib.h>

#include "sharding/gradients.h"
#include "tests/common/bench.h"

enum { TENSORS = 32, COUNT = 1 << 20, MICRO_STEPS = 4, ROUNDS = 5 };

static enum status make_gradients(struct gradients *gradients, int64_t j) {
  gradients_begin(gradients, j);
  for (int64_t t = TENSORS - 1; t >= 0; t--) {
    float *place;
    TRY(gradients_at(&place, gradients, t, 0));
    for (int64_t i = 0; i < COUNT; i++) place[i] += 1;
    TRY(gradients_done(gradients, t, 0));
  }
  return gradients_end(gradients);
}

static enum status step(struct gradients *gradients) {
  for (int64_t j = 0; j < MICRO_STEPS; j++) TRY(make_gradients(gradients, j));
  return gradients_finish(gradients);
}

/* Seconds of the best step. */
static enum status measure(double *best, struct gradients *gradients, struct comm *world) {
  *best = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    TRY(comm_barrier(world));
    const double started = MPI_Wtime();
    TRY(step(gradients));
    double seconds = MPI_Wtime() - started;
    TRY(comm_allreduce(world, &seconds, 1, DTYPE_F64, COMM_MAX));
    if (seconds < *best) *best = seconds;
  }
  return STATUS_OK;
}

static enum status run(double *seconds, struct comm *world, bool canonical) {
  struct grid grid;
  struct arena arena;
  struct gradients *gradients;
  static struct gradients_tensor tensors[TENSORS];
  for (int i = 0; i < TENSORS; i++) tensors[i] = (struct gradients_tensor){.count = COUNT};
  TRY(grid_init(
      &grid, world,
      &(struct grid_options){.micro_shards = MICRO_STEPS * world->size, .canonical = canonical}));
  const struct gradients_setup setup = {
      .grid = &grid, .tensors = tensors, .count = TENSORS, .dtype = DTYPE_F32};
  arena_measure(&arena, "sums");
  TRY(gradients_init(&gradients, &setup, &arena));
  TRY(arena_init(&arena, "sums", arena.peak));
  TRY(gradients_init(&gradients, &setup, &arena));
  TRY(measure(seconds, gradients, world));
  gradients_free(gradients);
  arena_free(&arena);
  grid_free(&grid);
  return STATUS_OK;
}

static double rate(double seconds) {
  return (double)TENSORS * COUNT * sizeof(float) / seconds / 1e9;
}

int main(void) {
  struct comm world;
  double fast, canonical;
  if (comm_init(&world, NULL) != STATUS_OK) return EXIT_FAILURE;
  if (run(&fast, &world, false) != STATUS_OK) comm_abort(&world, 1);
  if (run(&canonical, &world, true) != STATUS_OK) comm_abort(&world, 1);
  if (world.rank == 0) {
    bench_head();
    bench_row("sums_fast", rate(fast), "GB/s", 1, "itself");
    bench_row("sums_canonical", rate(canonical), "GB/s", fast / canonical, "fast sums");
  }
  comm_finalize(&world);
  return EXIT_SUCCESS;
}
