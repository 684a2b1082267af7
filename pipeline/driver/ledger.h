/* The ledger of a run: one JSON object a line for each attempt at a node and each submission. It
 * and the manifests are the truth about a run; a scheduler's queue is a hint (R-SLM-5).
 *
 *   {"time": "...Z", "event": "start", "node": "elf", "host": "...", "pid": 1, "ranks": 2}
 *   {"time": "...Z", "event": "end", "node": "elf", "exit": 0, "seconds": 12.3}
 *   {"time": "...Z", "event": "submit", "node": "elf", "job": "17"}
 */
#ifndef PIPELINE_DRIVER_LEDGER_H
#define PIPELINE_DRIVER_LEDGER_H

#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/driver/run.h"

/* Appends the start or the end of an attempt, or a submission to a scheduler. Local. WRITE. */
enum status ledger_start(const struct run *run, const char *node, int64_t ranks);
enum status ledger_end(const struct run *run, const char *node, int exit_code, double seconds);
enum status ledger_submit(const struct run *run, const char *node, const char *job);

enum { LEDGER_JOB_BYTES = 64 };

/* What the ledger knows of a node. */
struct ledger_entry {
  int64_t attempts;
  int last_exit;              /* -1 when the last attempt has no end */
  double seconds;             /* of the last attempt that ended */
  char job[LEDGER_JOB_BYTES]; /* of the last submission; "" when there was none */
};

/* Reads the ledger's view of a node; lines that cannot be understood (cut by a crash) are passed
 * over. Local. ENVIRONMENT when it cannot be read. */
enum status ledger_read(struct ledger_entry *entry, const struct run *run, const char *node);

#endif
