/* The schedule alpha(t) of categorical flows: how much of the state is data at time t.
 *
 * Source: "Discrete Flow Maps" (arXiv 2604.09784) section 4.1 and "Categorical Flow Maps" at scale
 * (arXiv 2605.07820): alpha_t = (1 - lambda) t + lambda gamma_t, where gamma_t makes the
 * probability that the largest coordinate of the noisy one-hot state is the right token grow
 * linearly in t.
 */
#ifndef STAGES_FLOW_CFM_SCHEDULE_H
#define STAGES_FLOW_CFM_SCHEDULE_H

#include <stdint.h>

enum { CFM_SCHEDULE_POINTS = 1024 };

struct cfm_schedule {
  double lambda;
  int64_t vocabulary;
  double leverage; /* what of a token's signal power the network can see, in (0, 1] */
  double gamma[CFM_SCHEDULE_POINTS + 1]; /* at t = sin^2(pi i / (2 POINTS)) */
};

/* Tabulates gamma for a vocabulary of at least 2. `leverage` 1 is the
 * published schedule, of decisions from the state in R^V. The network only sees the state's image
 * in d < V dimensions, where a token stands out by sqrt(d / V) of the signal-to-noise ratio on
 * average: leverage d / V gives the schedule of decisions from that image. Local. */
void cfm_schedule_init(struct cfm_schedule *schedule, int64_t vocabulary, double lambda,
                       double leverage);

/* alpha(t) for t in [0, 1]; alpha(0) = 0, alpha(1) = 1, increasing. Local. */
double cfm_schedule_alpha(const struct cfm_schedule *schedule, double t);

/* Entry i of the table, i in [0, POINTS]: the share of right decisions, and the alpha at which it
 * is reached. Local. */
double cfm_schedule_place(const struct cfm_schedule *schedule, int i, double *alpha);

/* gamma_t by bisection, to about 1e-12. Local. */
double cfm_schedule_gamma(int64_t vocabulary, double t);

/* The share of right decisions beyond chance at signal share g: 0 at g = 0, 1 at g = 1. Local. */
double cfm_schedule_decoded(int64_t vocabulary, double g);

#endif
