/* The times of ELF's samplers. */
#include <stdlib.h>

#include "stages/flow/elf_state.h"

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void elf_grid(double *times, int64_t steps, const struct options *train,
              const struct options *sample, uint64_t seed) {
  const struct random_stream stream = random_open(seed, "elf.sample.grid", 0, 0);
  times[0] = 0;
  times[steps] = 1;
  for (int64_t k = 1; k < steps; k++) {
    const double even = (double)k / (double)steps;
    if (sample->elf_grid == GRID_RANDOM)
      times[k] = elf_time(train, random_uniform(stream, (uint64_t)k));
    else
      times[k] = sample->elf_grid == GRID_QUANTILE ? elf_time(train, even) : even;
  }
  qsort(times, (size_t)steps + 1, sizeof *times, compare);
}
