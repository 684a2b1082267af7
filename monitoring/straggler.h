/* Finds the rank that holds the others up (R-MPI-5). */
#ifndef MONITORING_STRAGGLER_H
#define MONITORING_STRAGGLER_H

#include "monitoring/timer.h"

struct straggler {
  int rank;
  enum timer_phase phase;
  double seconds; /* of that rank in that phase */
  double ratio;   /* to the median over ranks, of two the lesser */
};

/* The rank and phase furthest above the median over ranks, from seconds[ranks][TIMER_PHASES]. The
 * phase in which ranks wait for one another is left out, and those that one rank has for all. Ratio
 * 1 when nobody stands out. Local. */
struct straggler straggler_find(const double *seconds, int ranks);

#endif
