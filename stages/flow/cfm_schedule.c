#include "stages/flow/cfm_schedule.h"

#include <math.h>

static const double HALF_PI = 1.57079632679489661923;
static const double SQRT_HALF = 0.70710678118654752440;
static const double LOG_SQRT_TWO_PI = 0.91893853320467274178;
static const double LIMIT = 12; /* the normal density beyond it is below 1e-31 */

enum { NODES_PER_UNIT = 50, BISECTIONS = 52 };

/* log of the standard normal distribution function. */
static double log_normal_cdf(double x) {
  if (x > -10) return log(0.5 * erfc(-x * SQRT_HALF));
  const double s = 1 / (x * x);
  return -0.5 * x * x - log(-x) - LOG_SQRT_TWO_PI + log1p(-s * (1 - 3 * s * (1 - 5 * s)));
}

/* Probability that a coordinate raised by `ratio` exceeds V - 1 others, all with unit normal noise:
 * the integral of phi(u) Phi(u + ratio)^(V - 1), by the trapezoid rule, which converges faster than
 * any power here. */
static double probability_right(int64_t vocabulary, double ratio) {
  const double step = 1.0 / NODES_PER_UNIT;
  double sum = 0;
  for (int i = -(int)LIMIT * NODES_PER_UNIT; i <= (int)LIMIT * NODES_PER_UNIT; i++) {
    const double u = i * step;
    const double others = (double)(vocabulary - 1) * log_normal_cdf(u + ratio);
    sum += exp(-0.5 * u * u - LOG_SQRT_TWO_PI + others);
  }
  return sum * step;
}

double cfm_schedule_decoded(int64_t vocabulary, double g) {
  if (g <= 0) return 0;
  if (g >= 1) return 1;
  const double v = (double)vocabulary;
  return (probability_right(vocabulary, g / (1 - g)) - 1 / v) * v / (v - 1);
}

/* Bisection for decoded(g) = t between two bounds. */
static double solve(int64_t vocabulary, double t, double low, double high, int rounds) {
  for (int i = 0; i < rounds; i++) {
    const double middle = 0.5 * (low + high);
    if (cfm_schedule_decoded(vocabulary, middle) < t)
      low = middle;
    else
      high = middle;
  }
  return 0.5 * (low + high);
}

double cfm_schedule_gamma(int64_t vocabulary, double t) {
  if (t <= 0) return 0;
  if (t >= 1) return 1;
  return solve(vocabulary, t, 0, 1, BISECTIONS);
}

static double table_time(int i) {
  const double s = sin(HALF_PI * i / CFM_SCHEDULE_POINTS);
  return s * s;
}

/* The table is made by inverting decoded(g) on a fine grid of g: one evaluation a point. */
static void tabulate(struct cfm_schedule *schedule) {
  const int fine = 4 * CFM_SCHEDULE_POINTS;
  double below = 0, low = 0;
  int i = 1;
  for (int j = 1; j <= fine && i < CFM_SCHEDULE_POINTS; j++) {
    const double g = (double)j / fine;
    const double reached = cfm_schedule_decoded(schedule->vocabulary, g);
    for (; i < CFM_SCHEDULE_POINTS && table_time(i) <= reached; i++)
      schedule->gamma[i] = low + (g - low) * (table_time(i) - below) / (reached - below);
    below = reached;
    low = g;
  }
  for (; i < CFM_SCHEDULE_POINTS; i++) schedule->gamma[i] = 1;
}

/* The share of signal whose visible ratio to the noise is that of the share `g`. */
static double beyond(double g, double leverage) {
  if (g >= 1) return 1;
  const double ratio = g / (1 - g) / sqrt(leverage);
  return ratio / (1 + ratio);
}

void cfm_schedule_init(struct cfm_schedule *schedule, int64_t vocabulary, double lambda,
                       double leverage) {
  *schedule =
      (struct cfm_schedule){.lambda = lambda, .vocabulary = vocabulary, .leverage = leverage};
  schedule->gamma[CFM_SCHEDULE_POINTS] = 1;
  tabulate(schedule);
  for (int i = 0; i < CFM_SCHEDULE_POINTS && leverage < 1; i++)
    schedule->gamma[i] = beyond(schedule->gamma[i], leverage);
}

double cfm_schedule_place(const struct cfm_schedule *schedule, int i, double *alpha) {
  *alpha = schedule->gamma[i];
  return table_time(i);
}

static double clamp_unit(double t) {
  return t < 0 ? 0 : t > 1 ? 1 : t;
}

/* The interval of the table that holds t. */
static int interval(double t) {
  const int i = (int)(asin(sqrt(t)) / HALF_PI * CFM_SCHEDULE_POINTS);
  return i < CFM_SCHEDULE_POINTS ? i : CFM_SCHEDULE_POINTS - 1;
}

double cfm_schedule_alpha(const struct cfm_schedule *schedule, double t) {
  const double time = clamp_unit(t);
  if (schedule->lambda <= 0) return time;
  const int i = interval(time);
  const double from = table_time(i), to = table_time(i + 1);
  const double gamma = schedule->gamma[i] + (schedule->gamma[i + 1] - schedule->gamma[i]) *
                                                clamp_unit((time - from) / (to - from));
  return (1 - schedule->lambda) * time + schedule->lambda * gamma;
}
