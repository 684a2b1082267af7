/* A whole training step of one process - objective, gradients, optimizer - on random rows. */
#ifndef TESTS_COMMON_BENCH_STEP_H
#define TESTS_COMMON_BENCH_STEP_H

#include "pipeline/config/options.h"
#include "stages/flow/flow.h"

struct bench_step_shape {
  const struct flow_kind *kind;
  struct options options; /* of the node */
  int64_t rows, positions, vocabulary, embedding_width;
};

/* What one step took. */
struct bench_step_times {
  double forward, backward, optimizer; /* seconds */
  double flop;                         /* that the step needs: nothing counts twice */
  int64_t parameters, tokens;
};

/* Runs `steps` steps after one that is not counted; times are those of the fastest. Ends the
 * program with the error's message on failure. Local. */
struct bench_step_times bench_step_run(const struct bench_step_shape *shape, int steps);

#endif
