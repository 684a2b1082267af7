#include "tests/common/bench.h"

#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double round_seconds(bench_work *work, void *context) {
  const double start = now();
  double elapsed = 0;
  int runs = 0;
  do {
    work(context);
    runs++;
    elapsed = now() - start;
  } while (elapsed < 0.02);
  return elapsed / runs;
}

double bench_seconds(bench_work *work, void *context, int rounds) {
  double best = round_seconds(work, context);
  for (int i = 0; i < rounds; i++) {
    const double seconds = round_seconds(work, context);
    if (i == 0 || seconds < best) best = seconds;
  }
  return best;
}

void bench_head(void) {
  printf("name,value,unit,ratio,against\n");
}

void bench_row(const char *name, double value, const char *unit, double ratio,
               const char *against) {
  printf("%s,%.4g,%s,", name, value, unit);
  if (*against) printf("%.4g", ratio);
  printf(",%s\n", against);
  fflush(stdout);
}
