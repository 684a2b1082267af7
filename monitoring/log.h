/* What a job says to people. Nothing else below the main programs prints.
 *
 * A log belongs to one stage of one node; on all ranks but one it is silent. Lines are headed by
 * the node's name.
 */
#ifndef MONITORING_LOG_H
#define MONITORING_LOG_H

#include <stdio.h>

#include "pipeline/base/error.h"

struct text;

struct log {
  FILE *out;        /* borrowed; NULL: silent */
  const char *name; /* borrowed; heads every line; NULL: no head */
};

/* Says one line. The format has no newline. `log` may be NULL: silent. Local. */
void log_line(struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As log_line, headed by "warning: ". Local. */
void log_warn(struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says each line of a text, as log_line or as log_warn does. Local. */
void log_lines(struct log *log, const struct text *lines);
void log_warn_lines(struct log *log, const struct text *lines);

/* Says on the standard error why a program ends: the last error raised, what its status means, and
 * what to do. Where it was raised matters for faults of the program only. Local. */
void log_failure(const char *program, enum status status);

/* As log_failure, then ends the process with the exit code of the status, for what can neither go
 * on nor return. Does not return. Local. */
_Noreturn void log_failure_end(const char *program, enum status status);

#endif
