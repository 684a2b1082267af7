/* Watches the numbers of a training: reports, never decides.
 *
 * A loss is a spike when it lies further above the median of the last HEALTH_WINDOW accepted losses
 * than HEALTH_SPIKE times their median deviation. Skipped steps do not enter the window. The window
 * is part of the checkpoint, so that a replayed run reports the same.
 */
#ifndef MONITORING_HEALTH_H
#define MONITORING_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

enum { HEALTH_WINDOW = 64, HEALTH_LEAST = 16, HEALTH_SPIKE = 10 };

struct health {
  double losses[HEALTH_WINDOW]; /* of accepted steps, in a ring */
  int64_t count;                /* accepted so far */
};

/* Whether a loss and a gradient norm are numbers. Local. */
bool health_finite(double loss, double gradient_norm);

/* How many median deviations `loss` lies above the median of the window; 0 while the window holds
 * fewer than HEALTH_LEAST. Local. */
double health_deviation(const struct health *health, double loss);

/* Takes the loss of an accepted step into the window. Local. */
void health_accept(struct health *health, double loss);

#endif
