/* What a job says to people. Nothing else below the main programs prints.
 *
 * A log belongs to one stage of one node; on all ranks but one it is silent. Lines are headed by
 * the node's name. On a terminal, progress overwrites itself in place; elsewhere each progress line
 * is a line of its own, so callers decide how often (log_every).
 */
#ifndef MONITORING_LOG_H
#define MONITORING_LOG_H

#include <stdbool.h>
#include <stdio.h>

struct log {
  FILE *out;        /* borrowed; NULL: silent */
  const char *name; /* borrowed; heads every line; NULL: no head */
  bool terminal;    /* lines can be overwritten */
  int shown;        /* columns of the progress line that stands on the terminal */
};

/* Makes a log on `out` (NULL for a silent one). Local. */
void log_open(struct log *log, FILE *out, const char *name, bool terminal);

/* Ends a progress line that still stands. Accepts a zeroed log. Local. */
void log_close(struct log *log);

/* Says one line. The format has no newline. `log` may be NULL: silent. Local. */
void log_line(struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As log_line, headed by "warning: ". Local. */
void log_warn(struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says how far the work is; the next call replaces the line on a terminal. Local. */
void log_progress(struct log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
