/* Check of forward derivatives: the tangent that a moving tape gives against central differences in
 * double, and that a measuring tape takes the same memory.
 */
#ifndef TESTS_COMMON_JVP_H
#define TESTS_COMMON_JVP_H

#include <stdint.h>

#include "stages/model/tape/tape.h"

enum { JVP_INPUTS = 3 };

struct jvp_case {
  /* Returns the output for inputs, whose tangents are set when tape->moving; whatever else moves
   * (times) is to be at its place plus `shift` times its rate. */
  struct value *(*build)(void *context, struct tape *tape, struct value *const *inputs,
                         double shift);
  void *context;
  struct {
    int64_t rows, cols;
    bool fixed;          /* has no tangent */
  } inputs[JVP_INPUTS];  /* ended by rows == 0 */
  struct params *params; /* declared and bound in double, or NULL */
  double tolerance;      /* of the largest difference over the size of the tangent; 0: 1e-6 */
};

/* Fails the running test unless the tangent of the output is its derivative. */
void jvp_check(const struct jvp_case *tested);

/* Binds parameters in double, with random values added to the initial ones; `arena` is to be freed
 * by the caller. */
void jvp_bind(struct params *params, struct arena *arena);

#endif
