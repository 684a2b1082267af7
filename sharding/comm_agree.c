#include <stdio.h>
#include <string.h>

#include "sharding/comm_call.h"

/* From the one that matters least: what must not be tried again wins. */
static const enum status by_severity[] = {
    STATUS_OK,    STATUS_STOPPED,  STATUS_WRITE,   STATUS_ENVIRONMENT, STATUS_HANG,
    STATUS_USAGE, STATUS_MISMATCH, STATUS_DAMAGED, STATUS_NUMERIC,     STATUS_INTERNAL,
};

enum { REPORT_BYTES = 3500 }; /* room is left for the head of the message */

struct report {
  char host[MPI_MAX_PROCESSOR_NAME];
  char message[REPORT_BYTES];
  char trace[REPORT_BYTES];
};

_Static_assert(sizeof by_severity / sizeof *by_severity == STATUS_COUNT,
               "a status has no severity");

static int64_t severity_of(enum status status) {
  int64_t severity = 0;
  while (by_severity[severity] != status) severity++;
  return severity;
}

static void fill(struct report *report) {
  int length = 0;
  memset(report, 0, sizeof *report);
  MPI_Get_processor_name(report->host, &length);
  snprintf(report->message, sizeof report->message, "%s", error_message());
  snprintf(report->trace, sizeof report->trace, "%s", error_trace());
}

static enum status spread(struct comm *comm, int origin) {
  struct report report;
  char message[sizeof report.message + sizeof report.host + 32];
  if (comm->rank == origin) fill(&report);
  TRY(comm_broadcast(comm, &report, (int64_t)sizeof report, origin));
  const bool headed = strncmp(report.message, "rank ", 5) == 0; /* agreed on further in already */
  if (headed) snprintf(message, sizeof message, "%s", report.message);
  if (!headed)
    snprintf(message, sizeof message, "rank %d on %s: %s", origin, report.host, report.message);
  error_adopt(message, report.trace);
  return STATUS_OK;
}

enum status comm_agree(struct comm *comm, enum status status) {
  if (comm->size == 1) return status;
  int64_t worst = severity_of(status) * comm->size + (comm->size - 1 - comm->rank);
  TRY(comm_allreduce(comm, &worst, 1, DTYPE_I64, COMM_MAX));
  const enum status agreed = by_severity[worst / comm->size];
  if (agreed == STATUS_OK) return STATUS_OK;
  TRY(spread(comm, comm->size - 1 - (int)(worst % comm->size)));
  return agreed;
}
