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

#include <stdbool.h>
#include <stdint.h>

#include "stages/flow/cfm_schedule.h"

/* R at the places of a grid of `steps` steps, ratio[steps + 1]. Even: uniform in t, to t = 1 - 1 /
 * (2 steps), the middle of the last of as many equal parts.
 *
 * By information: a step from R to R + dR costs the Gaussian form about dR dm / 4 more than many
 * small ones, m(R) being the error ||x - psi||^2 that is left, so that sqrt(-m') dR is to be the
 * same for all steps. Of one token alone m is about the share of wrong decisions, which the
 * schedule's table holds; the grid ends where they are 1 in 20, and the rest is left to the last
 * term. Any grid gives a bound: it only has to be fixed before the text is seen. Local. */
void cfm_bound_grid(double *ratio, const struct cfm_schedule *schedule, int64_t steps,
                    bool information);

/* alpha of a ratio R. Local. */
double cfm_bound_alpha(double ratio);

/* KL of a step over which R grows by `gap`, in nats. Gaussian: p = q(. | psi) in place of x, from
 * the squared distance ||x - psi||^2. Jensen: from above, that of the mixture
 * p = sum_j psi_j q(. | e_j), from psi of the token. Local. */
double cfm_bound_gaussian(double gap, double distance);
double cfm_bound_jensen(double gap, double probability);

#endif
