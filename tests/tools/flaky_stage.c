/* millrace-stage on a machine that fails: in the FLAKY_DECISION-th decision about a step, and in
 * all of FLAKY_TIMES (1) from there on, the last rank tells of numbers that are not finite. */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "stages/main.c"

static bool fails(int64_t decision) {
  const char *which = getenv("FLAKY_DECISION"), *times = getenv("FLAKY_TIMES");
  if (!which) return false;
  const int64_t first = strtoll(which, NULL, 10), count = times ? strtoll(times, NULL, 10) : 1;
  return decision >= first && decision < first + count;
}

/* The largest of three integers each is what ranks decide about a step by (and a few things at
 * the start). */
int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op operation,
                  MPI_Comm comm) {
  static int64_t decisions;
  if (count == 3 && type == MPI_INT64_T && operation == MPI_MAX) {
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    if (fails(++decisions) && rank == size - 1) ((int64_t *)received)[1] = 1;
  }
  return PMPI_Allreduce(sent, received, count, type, operation, comm);
}
