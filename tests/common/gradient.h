/* Derivative checks of anything built on a tape, in double through the reference kernels.
 *
 * A case says how to build: from inputs, which the harness makes and which need gradients, and from
 * the parameters it names. What is differentiated is a fixed random projection of the value that
 * `build` returns plus the objective it leaves on the tape itself (losses).
 *
 * Each check also proves that a measuring tape takes the same bytes as the real one, and that each
 * parameter is reported ready exactly once.
 */
#ifndef TESTS_COMMON_GRADIENT_H
#define TESTS_COMMON_GRADIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "stages/model/tape/tape.h"

enum { GRADIENT_INPUTS = 6 };

struct gradient_shape {
  int64_t rows, cols;
};

struct gradient_case {
  /* Returns the value to project, or NULL; adds what is on the tape already to *objective, which
   * a measuring tape leaves as it is. Called many times; draws must repeat. */
  struct value *(*build)(void *context, struct tape *tape, struct value *const *inputs,
                         double *objective);
  void *context;
  struct gradient_shape inputs[GRADIENT_INPUTS]; /* ended by rows == 0 */
  struct params *params; /* declared, not bound; NULL: none. Bound once by the first check */
  double spread;         /* of what is added to initial parameters; 0: 0.3 */
  double step;           /* of the differences; 0: 1e-3 */
  double tolerance;      /* relative error; 0: 1e-6 */
  bool measures_most;    /* what runs depends on draws: a measuring tape takes what is enough */
};

/* Checks the derivative along three random directions for each input and each parameter apart.
 * Fails the running test otherwise. */
void gradient_check(const struct gradient_case *tested);

/* Numbers in all inputs and parameters; all gradients at the point of the check, inputs first, and
 * the value of the objective. `gradients` may be NULL. */
int64_t gradient_count(const struct gradient_case *tested);
double gradient_compute(const struct gradient_case *tested, double *gradients);

/* Fails the running test unless two cases have the same objective and gradients to the last bit. */
void gradient_same(const struct gradient_case *a, const struct gradient_case *b);

#endif
