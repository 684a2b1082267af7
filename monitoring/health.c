#include "monitoring/health.h"

#include <math.h>
#include <stdlib.h>

bool health_finite(double loss, double gradient_norm) {
  return isfinite(loss) && isfinite(gradient_norm);
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The lower median; sorts `values`. */
static double median(double *values, int64_t count) {
  qsort(values, (size_t)count, sizeof(*values), compare);
  return values[(count - 1) / 2];
}

double health_deviation(const struct health *health, double loss) {
  const int64_t count = health->count < HEALTH_WINDOW ? health->count : HEALTH_WINDOW;
  if (count < HEALTH_LEAST) return 0;
  double values[HEALTH_WINDOW];
  for (int64_t i = 0; i < count; i++) values[i] = health->losses[i];
  const double middle = median(values, count);
  for (int64_t i = 0; i < count; i++) values[i] = fabs(health->losses[i] - middle);
  const double spread = median(values, count);
  const double floor = 1e-3 * fabs(middle) + 1e-12; /* a loss that hardly moves is not a spike */
  return (loss - middle) / (spread > floor ? spread : floor);
}

void health_accept(struct health *health, double loss) {
  health->losses[health->count++ % HEALTH_WINDOW] = loss;
}
