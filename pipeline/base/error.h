/* Errors: a status code returned by every fallible function, and one report per thread that holds
 * the message of the failure and the path of calls it passed on its way up.
 */
#ifndef PIPELINE_BASE_ERROR_H
#define PIPELINE_BASE_ERROR_H

enum status {
#define STATUS(name, code, meaning, advice) STATUS_##name,
#include "pipeline/base/status.def"
#undef STATUS
  STATUS_COUNT
};

/* Raises an error: the report of this thread becomes the formatted message. Returns `status`.
 * Messages name file, offset, key, expected and found. Local. */
enum status error_raise(enum status status, const char *file, int line, const char *function,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Adds a frame to the report of this thread. Returns `status`. Local. */
enum status error_pass(enum status status, const char *file, int line, const char *function);

/* Replaces the report of this thread by one made elsewhere (another rank or thread). Local. */
void error_adopt(const char *message, const char *trace);

/* The message of the last failure of this thread; "" when there was none. Borrowed. Local. */
const char *error_message(void);

/* The calls the last failure passed, innermost first, one a line. Borrowed. Local. */
const char *error_trace(void);

/* Forgets the report of this thread. Local. */
void error_clear(void);

/* The exit code of a program that ends with `status`, as documented in status.def. Local. */
int error_exit_code(enum status status);

/* The status that a program which ended with exit code `code` reported; INTERNAL for a code that
 * is not in status.def. Local. */
enum status error_status_of_exit(int code);

/* What the status means and what to do about it, one short phrase each. Borrowed. Local. */
const char *error_meaning(enum status status);
const char *error_advice(enum status status);

#define FAIL(status, ...) return error_raise(status, __FILE__, __LINE__, __func__, __VA_ARGS__)

#define CHECK(condition, status, ...)                                                              \
  do {                                                                                             \
    if (!(condition)) FAIL(status, __VA_ARGS__);                                                   \
  } while (0)

#define TRY(call)                                                                                  \
  do {                                                                                             \
    const enum status try_status_ = (call);                                                        \
    if (try_status_ != STATUS_OK) return error_pass(try_status_, __FILE__, __LINE__, __func__);    \
  } while (0)

/* As TRY, for functions with one clean-up label: sets `variable` and jumps there. */
#define TRY_OR(variable, label, call)                                                              \
  do {                                                                                             \
    variable = (call);                                                                             \
    if (variable != STATUS_OK) {                                                                   \
      error_pass(variable, __FILE__, __LINE__, __func__);                                          \
      goto label;                                                                                  \
    }                                                                                              \
  } while (0)

#endif
