/* Files that another host has made, and that this one may not see yet: what a network file system
 * knows of a folder may be some seconds old.
 */
#ifndef PIPELINE_BASE_APPEAR_H
#define PIPELINE_BASE_APPEAR_H

#include <stdio.h>

enum { APPEAR_SECONDS = 5 };

/* Opens a file that is known to have been made, as open() does: while it is not there, or not the
 * one that was, reads the folder again and looks again, for at most APPEAR_SECONDS (R-FS-3). Local.
 * -1 and errno on failure. */
int appear_open(const char *path, int flags);

/* ... for reading, as a stream. Local. NULL and errno on failure. */
FILE *appear_stream(const char *path);

#endif
