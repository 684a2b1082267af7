/* A lease on a node: at most one driver runs a node of a run folder at a time.
 *
 * The lease is a file beside the node's folder, made by link(), which is exclusive on every file
 * system. It lists its holders, one a line: host, boot id, process id, start time; first the
 * driver, then the ranks it started. It is alive while any holder is. Holders on this machine are
 * looked up; of holders elsewhere the file's age tells, since a living driver touches it. No lock
 * is held, so nothing blocks a restart after a kill (R-FS-4, R-DAT-5).
 */
#ifndef PIPELINE_DRIVER_LEASE_H
#define PIPELINE_DRIVER_LEASE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

enum {
  LEASE_TOUCH_SECONDS = 5,
  LEASE_LIFE_SECONDS = 60, /* without a touch, holders on other machines count as dead */
  LEASE_HOLDER_BYTES = 256
};

struct lease {
  char path[PATH_MAX];
  bool held;
};

enum lease_state { LEASE_FREE, LEASE_ALIVE, LEASE_DEAD };

/* Names the lease of `node` in a run folder. Local. MISMATCH when the path is too long. */
enum status lease_locate(struct lease *lease, const char *run_folder, const char *node);

/* Looks at the lease; `holder`, when not NULL, receives a living holder's "process P on H", or the
 * first one's. Local. */
enum lease_state lease_look(const struct lease *lease, char holder[LEASE_HOLDER_BYTES]);

/* Tries to take the lease, first removing one whose holders are dead. `*taken` is false when
 * somebody else has it. Local. WRITE on failure of the file system. */
enum status lease_take(struct lease *lease, bool *taken);

/* One line that describes process `pid` of this machine as a holder. Local. */
void lease_describe(char holder[LEASE_HOLDER_BYTES], pid_t pid);

/* Adds a holder's line to an existing lease. Local. WRITE on failure. */
enum status lease_join(const struct lease *lease, const char *holder);

/* Shows that the driver lives. Local. */
void lease_touch(const struct lease *lease);

/* Gives a held lease back. Local. */
void lease_release(struct lease *lease);

#endif
