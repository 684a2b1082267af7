/* The head of every cmocka test program: cmocka wants these headers in this order. */
#ifndef TESTS_COMMON_TAP_H
#define TESTS_COMMON_TAP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipeline/base/error.h"

/* Fails the test with the error's message when a call does not return STATUS_OK. */
#define assert_ok(call)                                                                            \
  do {                                                                                             \
    if ((call) != STATUS_OK) fail_msg("%s\n%s", error_message(), error_trace());                   \
  } while (0)

/* Fails the test when a call does not return `expected`. */
#define assert_status(expected, call) assert_int_equal(expected, call)

/* Fails the test when two doubles are further apart than `most`. */
#define assert_near(value, expected, most)                                                         \
  do {                                                                                             \
    const double near_value_ = (value), near_expected_ = (expected);                               \
    const double near_apart_ = near_value_ - near_expected_;                                       \
    if (!(near_apart_ <= (most) && -near_apart_ <= (most)))                                        \
      fail_msg("%s is %.17g, expected %.17g", #value, near_value_, near_expected_);                \
  } while (0)

#endif
