/* np: 2
 * Sums of 256 MiB over the ranks of one node, against one MPI_Allreduce of the same array and
 * against MPI_Allreduce in blocks; through messages and through shared memory. GB/s counts the
 * array once. Rows: name,value,unit,ratio,against.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sharding/comm.h"
#include "sharding/window.h"
#include "tests/common/bench.h"

enum { ROUNDS = 5 };

static const int64_t count = INT64_C(256) << 18; /* floats */

static enum status tree(struct comm *world, float *values) {
  return comm_tree_sum(world, values, count, DTYPE_F32);
}

static enum status blocks(struct comm *world, float *values) {
  return comm_allreduce(world, values, count, DTYPE_F32, COMM_SUM);
}

static enum status plain(struct comm *world, float *values) {
  MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, world->handle);
  return STATUS_OK;
}

/* GB/s of the best round. */
static double measure(struct comm *world, float *values,
                      enum status (*sum)(struct comm *, float *)) {
  double best = 1e30;
  for (int i = 0; i < ROUNDS; i++) {
    for (int64_t j = 0; j < count; j++) values[j] = 1;
    MPI_Barrier(world->handle);
    const double started = MPI_Wtime();
    if (sum(world, values) != STATUS_OK) comm_abort(world, 1);
    double seconds = MPI_Wtime() - started;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, world->handle);
    if (seconds < best) best = seconds;
    if (values[count - 1] != (float)world->size) comm_abort(world, 1);
  }
  return (double)count * sizeof(float) / best / 1e9;
}

static void print(const struct comm *world, const char *name, double value, double against) {
  if (world->rank == 0)
    bench_row(name, value, "GB/s", value / against, "MPI_Allreduce of the whole array");
}

int main(void) {
  struct comm world;
  if (comm_init(&world, NULL) != STATUS_OK) return EXIT_FAILURE;
  float *values = malloc((size_t)count * sizeof *values);
  if (!values) return EXIT_FAILURE;
  const double plainly = measure(&world, values, plain);
  const double cut = measure(&world, values, blocks);
  const double halving = measure(&world, values, tree);
  if (window_open(&world, 0) != STATUS_OK) return EXIT_FAILURE;
  const double ours = measure(&world, values, tree);
  if (world.rank == 0) bench_head();
  print(&world, "allreduce_256MiB_blocks", cut, plainly);
  print(&world, "allreduce_256MiB_halving", halving, plainly);
  print(&world, "allreduce_256MiB", ours, plainly);
  free(values);
  comm_finalize(&world);
  return EXIT_SUCCESS;
}
