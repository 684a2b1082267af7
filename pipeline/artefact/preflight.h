/* Whether a folder will take what a job is about to save there: found out at its start, not after
 * hours of work. No MPI: one rank calls this.
 */
#ifndef PIPELINE_ARTEFACT_PREFLIGHT_H
#define PIPELINE_ARTEFACT_PREFLIGHT_H

#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

struct preflight {
  const char *folder; /* borrowed; made when it is not there */
  uint64_t bytes;     /* of one save */
  uint64_t files;     /* of one save, its folder included */
};

/* Writes a file there that is as large as a save (64 MiB at most), flushes it, renames it, reads it
 * back from storage where the system lets go of its copy, and removes it. Adds a line to `notes`
 * for each of bytes and inodes that two saves need and the file system does not have. Local. WRITE
 * when any of the moves fails or other bytes come back. */
enum status preflight_check(const struct preflight *preflight, struct text *notes);

#endif
