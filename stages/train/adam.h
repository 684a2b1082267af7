/* Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019), and its
 * Nesterov form (Dozat 2016).
 */
#ifndef STAGES_TRAIN_ADAM_H
#define STAGES_TRAIN_ADAM_H

#include <stdbool.h>
#include <stdint.h>

struct adam {
  double rate; /* learning rate of this step */
  double beta1, beta2, epsilon;
  double decay;          /* weights shrink by rate * decay */
  double gradient_scale; /* clipping: every gradient is multiplied by it */
  bool nesterov;
};

/* One update, the k-th of these weights (k from 1), with g = gradient_scale * gradient:
 *   m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
 *   u = m / (1 - beta1^k), or, in the Nesterov form,
 *   u = beta1 m / (1 - beta1^(k + 1)) + (1 - beta1) g / (1 - beta1^k),
 *   w = w - rate (u / (sqrt(v / (1 - beta2^k)) + epsilon) + decay w).
 * Local. */
void adam_update(float *w, float *m, float *v, const float *gradient, int64_t count, int64_t k,
                 const struct adam *adam);

#endif
