/* millrace-stage on a machine that fails once: in the FLAKY_DECISION-th decision about a step the
 * last rank tells of numbers that are not finite. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#include "stages/main.c"

/* The largest of three integers each is what ranks decide about a step by (and a few things at
 * the start). */
int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op operation,
                  MPI_Comm comm) {
  static int64_t decisions;
  const char *which = getenv("FLAKY_DECISION");
  if (which && count == 3 && type == MPI_INT64_T && operation == MPI_MAX) {
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    if (++decisions == strtoll(which, NULL, 10) && rank == size - 1) ((int64_t *)received)[1] = 1;
  }
  return PMPI_Allreduce(sent, received, count, type, operation, comm);
}
