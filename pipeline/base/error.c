#include "pipeline/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 4096, TRACE_BYTES = 4096 };

static _Thread_local struct {
  char message[MESSAGE_BYTES];
  char trace[TRACE_BYTES];
} report;

static const struct {
  int code;
  const char *meaning;
  const char *advice;
} statuses[STATUS_COUNT] = {
#define STATUS(name, code, meaning, advice) {code, meaning, advice},
#include "pipeline/base/status.def"
#undef STATUS
};

static void add_frame(const char *file, int line, const char *function) {
  const size_t used = strlen(report.trace);
  snprintf(report.trace + used, TRACE_BYTES - used, "  at %s (%s:%d)\n", function, file, line);
}

enum status error_raise(enum status status, const char *file, int line, const char *function,
                        const char *format, ...) {
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  memcpy(report.message, message, sizeof message);
  report.trace[0] = '\0';
  add_frame(file, line, function);
  return status;
}

enum status error_pass(enum status status, const char *file, int line, const char *function) {
  add_frame(file, line, function);
  return status;
}

void error_adopt(const char *message, const char *trace) {
  snprintf(report.message, MESSAGE_BYTES, "%s", message);
  snprintf(report.trace, TRACE_BYTES, "%s", trace);
}

const char *error_message(void) {
  return report.message;
}

const char *error_trace(void) {
  return report.trace;
}

void error_clear(void) {
  report.message[0] = '\0';
  report.trace[0] = '\0';
}

int error_exit_code(enum status status) {
  return statuses[status].code;
}

enum status error_status_of_exit(int code) {
  for (int i = 0; i < STATUS_COUNT; i++)
    if (statuses[i].code == code) return (enum status)i;
  return STATUS_INTERNAL;
}

const char *error_meaning(enum status status) {
  return statuses[status].meaning;
}

const char *error_advice(enum status status) {
  return statuses[status].advice;
}
