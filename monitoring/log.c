#include "monitoring/log.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/text.h"

static void head(const struct log *log, const char *before) {
  if (log->name) fprintf(log->out, "%-10s ", log->name);
  fputs(before, log->out);
}

static void say(struct log *log, const char *before, const char *format, va_list arguments) {
  if (!log || !log->out) return;
  head(log, before);
  vfprintf(log->out, format, arguments);
  fputc('\n', log->out);
  fflush(log->out);
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

static void say_lines(struct log *log, const struct text *lines,
                      void (*each)(struct log *, const char *, ...)) {
  for (const char *line = lines->bytes; line && *line;) {
    const int length = (int)strcspn(line, "\n");
    each(log, "%.*s", length, line);
    line += length + (line[length] == '\n');
  }
}

void log_lines(struct log *log, const struct text *lines) {
  say_lines(log, lines, log_line);
}

void log_warn_lines(struct log *log, const struct text *lines) {
  say_lines(log, lines, log_warn);
}

void log_failure(const char *program, enum status status) {
  fflush(stdout);
  fprintf(stderr, "%s: %s\n", program, error_message());
  if (status == STATUS_INTERNAL) fprintf(stderr, "%s", error_trace());
  fprintf(stderr, "%s: %s; %s (exit %d)\n", program, error_meaning(status), error_advice(status),
          error_exit_code(status));
}

void log_failure_end(const char *program, enum status status) {
  log_failure(program, status);
  _exit(error_exit_code(status));
}
