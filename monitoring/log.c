#include "monitoring/log.h"

#include <stdarg.h>

static void end_progress(struct log *log) {
  if (log->shown > 0) fputc('\n', log->out);
  log->shown = 0;
}

static int head(const struct log *log) {
  return log->name ? fprintf(log->out, "%-10s ", log->name) : 0;
}

static void say(struct log *log, const char *before, const char *format, va_list arguments) {
  if (!log || !log->out) return;
  end_progress(log);
  head(log);
  fputs(before, log->out);
  vfprintf(log->out, format, arguments);
  fputc('\n', log->out);
  fflush(log->out);
}

void log_open(struct log *log, FILE *out, const char *name, bool terminal) {
  *log = (struct log){.out = out, .name = name, .terminal = terminal};
}

void log_close(struct log *log) {
  if (log->out) end_progress(log);
  *log = (struct log){0};
}

void log_line(struct log *log, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(log, "", format, arguments);
  va_end(arguments);
}

void log_warn(struct log *log, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(log, "warning: ", format, arguments);
  va_end(arguments);
}

static void replace(struct log *log, const char *format, va_list arguments) {
  fputc('\r', log->out);
  const int columns = head(log) + vfprintf(log->out, format, arguments);
  for (int i = columns; i < log->shown; i++) fputc(' ', log->out);
  log->shown = columns;
  fflush(log->out);
}

void log_progress(struct log *log, const char *format, ...) {
  if (!log || !log->out) return;
  va_list arguments;
  va_start(arguments, format);
  if (log->terminal) replace(log, format, arguments);
  if (!log->terminal) say(log, "", format, arguments);
  va_end(arguments);
}
