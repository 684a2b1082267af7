#include "stages/stage_end.h"

#include <inttypes.h>
#include <unistd.h>

#include "monitoring/log.h"

enum status stage_end_alone(struct comm *world, int64_t step, enum status status) {
  if (status == STATUS_OK || world->size == 1) return status;
  error_raise(status, __FILE__, __LINE__, __func__,
              "rank %d failed alone in step %" PRId64 ", after exchange %" PRId64 " (%s): %s",
              world->rank, step, world->traffic.calls, world->traffic.last, error_message());
  log_failure(STAGE_PROGRAM, status);
  comm_abort(world, error_exit_code(status));
  return status;
}

void stage_end_hung(void *context, const struct watchdog_findings *found) {
  struct log log = {.out = stderr, .name = "hang"};
  (void)context;
  if (found) {
    log_lines(&log, &found->ranks);
    error_raise(STATUS_HANG, __FILE__, __LINE__, __func__, "%s", found->verdict.bytes);
    log_failure(STAGE_PROGRAM, STATUS_HANG);
  }
  _exit(error_exit_code(STATUS_HANG));
}
