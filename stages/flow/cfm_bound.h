/* Bounds on the negative log-likelihood of tokens under a categorical flow: the times of the grid
 * and the terms of a step.
 *
 * Between neighbouring times s < t of a grid 0 = t_0 < ... < t_K < 1 the state is the chain
 * q(z_t | z_s, x) that has the interpolant's marginals, and with R = (alpha / (1 - alpha))^2
 *
 *   -log p(x) <= sum_k E KL(q(z_k+1 | z_k, x) || p(z_k+1 | z_k)) + E[-log psi_K(x)],
 *
 * where p may be another function of the predicted distribution psi at every step (diffusion's
 * evidence bound, arXiv 2107.00630, with the endpoint predictor of arXiv 2604.09784).
 */
#ifndef STAGES_FLOW_CFM_BOUND_H
#define STAGES_FLOW_CFM_BOUND_H

#include <stdint.h>

#include "stages/flow/cfm_schedule.h"

/* R at place k of the grid of `steps` steps, k in [0, steps], not only whole: the grid is uniform
 * in t and ends at t = 1 - 1 / (2 steps), in the middle of the last of as many equal parts. Local.
 */
double cfm_bound_ratio(const struct cfm_schedule *schedule, int64_t steps, double k);

/* alpha of a ratio R. Local. */
double cfm_bound_alpha(double ratio);

/* KL of a step over which R grows by `gap`, in nats. Gaussian: p = q(. | psi) in place of x, from
 * the squared distance ||x - psi||^2. Jensen: from above, that of the mixture
 * p = sum_j psi_j q(. | e_j), from psi of the token. Local. */
double cfm_bound_gaussian(double gap, double distance);
double cfm_bound_jensen(double gap, double probability);

#endif
