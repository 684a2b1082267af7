#include "stages/train/adam.h"

#include <math.h>

/* The constants of one update: u = on_moment m + on_gradient g. */
struct constants {
  float beta1, rest1, beta2, rest2, scale;
  float on_moment, on_gradient, on_square, epsilon, rate, keep;
};

static struct constants prepare(const struct adam *adam, int64_t k) {
  const double left = 1 - pow(adam->beta1, (double)k);
  const double left_next = 1 - pow(adam->beta1, (double)(k + 1));
  const double on_moment = adam->nesterov ? adam->beta1 / left_next : 1 / left;
  return (struct constants){
      .beta1 = (float)adam->beta1,
      .rest1 = (float)(1 - adam->beta1),
      .beta2 = (float)adam->beta2,
      .rest2 = (float)(1 - adam->beta2),
      .scale = (float)adam->gradient_scale,
      .on_moment = (float)on_moment,
      .on_gradient = adam->nesterov ? (float)((1 - adam->beta1) / left) : 0,
      .on_square = (float)(1 / (1 - pow(adam->beta2, (double)k))),
      .epsilon = (float)adam->epsilon,
      .rate = (float)adam->rate,
      .keep = (float)(1 - adam->rate * adam->decay),
  };
}

void adam_update(float *restrict w, float *restrict m, float *restrict v,
                 const float *restrict gradient, int64_t count, int64_t k,
                 const struct adam *adam) {
  const struct constants c = prepare(adam, k);
  for (int64_t i = 0; i < count; i++) {
    const float g = c.scale * gradient[i];
    m[i] = c.beta1 * m[i] + c.rest1 * g;
    v[i] = c.beta2 * v[i] + c.rest2 * (g * g);
    const float u = c.on_moment * m[i] + c.on_gradient * g;
    w[i] = c.keep * w[i] - c.rate * u / (sqrtf(c.on_square * v[i]) + c.epsilon);
  }
}
