#include "stages/train/train_straggler.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitoring/straggler.h"
#include "stages/train/train_report.h"

enum { HOST_BYTES = 64 };

/* What ranks tell each other. */
struct spent {
  double seconds[TIMER_PHASES];
  char host[HOST_BYTES];
};

static void note(struct train *train, const struct spent *all, double *seconds, int64_t steps) {
  const int ranks = train->grid.world->size;
  for (int r = 0; r < ranks; r++)
    memcpy(seconds + (int64_t)r * TIMER_PHASES, all[r].seconds, sizeof all[r].seconds);
  const struct straggler found = straggler_find(seconds, ranks);
  if (found.ratio <= 1) return;
  snprintf(train->slowest, sizeof train->slowest, "slowest rank %d on %s: %s %.3g ms, %.2fx median",
           found.rank, all[found.rank].host, timer_phase_name(found.phase),
           1e3 * found.seconds / (double)steps, found.ratio);
}

static enum status compare(struct train *train, struct spent *mine, int64_t steps) {
  struct comm *world = train->grid.world;
  struct arena arena;
  const size_t ranks = (size_t)world->size;
  const size_t bytes = ranks * (sizeof *mine + TIMER_PHASES * sizeof(double));
  TRY(comm_agree(world, arena_init(&arena, "stragglers", bytes + 2 * ARENA_ALIGNMENT)));
  struct spent *all = arena_take(&arena, ranks * sizeof *all);
  const enum status status = comm_gather(world, all, mine, (int64_t)sizeof *mine, 0);
  if (status == STATUS_OK && world->rank == 0)
    note(train, all, arena_take(&arena, ranks * TIMER_PHASES * sizeof(double)), steps);
  arena_free(&arena);
  return status;
}

enum status train_straggler_step(struct train *train) {
  if (train->grid.world->size == 1) return STATUS_OK;
  timer_switch(&train->timer, TIMER_OTHER);
  for (int phase = 0; phase < TIMER_PHASES; phase++)
    train->recent[phase] += train->timer.seconds[phase];
  train->recent_steps++;
  if (!train_report_due(train)) return STATUS_OK;
  struct spent mine = {{0}, {0}};
  memcpy(mine.seconds, train->recent, sizeof mine.seconds);
  gethostname(mine.host, sizeof mine.host - 1);
  memset(train->recent, 0, sizeof train->recent);
  const int64_t steps = train->recent_steps;
  train->recent_steps = 0;
  train->slowest[0] = '\0';
  return compare(train, &mine, steps);
}
