/* A formulation of the smallest useful size, in double through the reference kernels, with a batch
 * of three rows: for tests of objectives and samplers.
 */
#ifndef TESTS_COMMON_TINY_FLOW_H
#define TESTS_COMMON_TINY_FLOW_H

#include "stages/flow/flow.h"

enum { TINY_ROWS = 3, TINY_POSITIONS = 4, TINY_LATENT = 6, TINY_VOCABULARY = 11 };

struct tiny_flow {
  struct options options; /* of the node and, in a request, of sampling */
  struct options distill; /* of a distill node, where `distills` */
  bool distills;          /* set before tiny_flow_open: there is a teacher */
  struct flow flow;
  struct flow_batch batch;
  struct params params, teacher;
  struct vocab vocab;
  struct kernels kernels;
  struct arena declarations, state, weights, taught, values, records; /* owned */
  int32_t tokens[TINY_ROWS * TINY_POSITIONS], lengths[TINY_ROWS];
  float embeddings[TINY_ROWS * TINY_POSITIONS * TINY_LATENT];
  int64_t samples[TINY_ROWS], strata[TINY_ROWS];
};

/* Options of two narrow layers; the test changes what it is about, then calls tiny_flow_open. */
void tiny_flow_options(struct tiny_flow *tiny);

/* Declares the formulation and makes the batch; parameters are not bound. Fails the running test
 * when it cannot. The struct refers to itself: it must not be moved. */
void tiny_flow_open(struct tiny_flow *tiny, const struct flow_kind *kind);

/* Binds parameters with gradients and gives all of them random values, so that no output is zero
 * from the start. */
void tiny_flow_bind(struct tiny_flow *tiny);

/* As tiny_flow_bind, of the teacher alone: for tests that bind the others themselves. */
void tiny_flow_bind_teacher(struct tiny_flow *tiny);

/* The objective's parts for some rows of the batch, with gradients when `backward` (added). */
struct flow_losses tiny_flow_loss(struct tiny_flow *tiny, const struct flow_batch *batch,
                                  const double *total, bool backward);

/* The one row `row` of the batch as a batch of its own. */
struct flow_batch tiny_flow_row(const struct tiny_flow *tiny, int64_t row);

/* Draws texts [first, first + count) with `calls` network calls. */
void tiny_flow_sample(struct tiny_flow *tiny, int32_t *tokens, int64_t first, int64_t count,
                      int64_t calls);

void tiny_flow_close(struct tiny_flow *tiny);

#endif
