/* Running weighted means: of a loss over its tokens, of a rate over its seconds. */
#ifndef MONITORING_METER_H
#define MONITORING_METER_H

struct meter {
  double sum, weight;
};

/* Adds `sum`, which `weight` units gave. Local. */
static inline void meter_add(struct meter *meter, double sum, double weight) {
  meter->sum += sum;
  meter->weight += weight;
}

/* Sum per unit; 0 before anything was added. Local. */
static inline double meter_mean(const struct meter *meter) {
  return meter->weight != 0 ? meter->sum / meter->weight : 0;
}

static inline void meter_reset(struct meter *meter) {
  *meter = (struct meter){0};
}

#endif
