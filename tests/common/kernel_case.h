/* Runs one kernel call through several tables on equal memory and compares all that it touched. */
#ifndef TESTS_COMMON_KERNEL_CASE_H
#define TESTS_COMMON_KERNEL_CASE_H

#include <stdint.h>

#include "stages/model/kernels/kernels.h"

enum { KERNEL_CASE_ARRAYS = 24 };

struct kernel_array {
  void *data;
  int64_t count;
  enum dtype dtype;
};

/* The memory of one run: arrays in the order in which the case took them. */
struct kernel_run {
  const struct kernels *kernels;
  const int64_t *sizes; /* of the case */
  int used;
  struct kernel_array arrays[KERNEL_CASE_ARRAYS];
};

/* Takes arrays from the run and calls one kernel. */
typedef void kernel_case(struct kernel_run *run);

/* `count` numbers, the same in every run: of the element type, or of the sum type. Owned by the
 * run. Local. */
void *kernel_case_elements(struct kernel_run *run, int64_t count);
void *kernel_case_sums(struct kernel_run *run, int64_t count);

/* The same, all of them in [0.5, 1.5]. Local. */
void *kernel_case_positive(struct kernel_run *run, int64_t count);

/* Whole numbers in [low, high). Local. */
int32_t *kernel_case_integers(struct kernel_run *run, int64_t count, int32_t low, int32_t high);

/* Runs the case with the reference and with every table for `element` that this machine can run:
 * the arrays of each agree with the reference's (normalised square error), and have the same bits
 * with 1 and 3 threads. Fails the cmocka test otherwise, naming it. Local. */
void kernel_case_check(const char *name, kernel_case *run, const int64_t *sizes,
                       enum dtype element);

#endif
