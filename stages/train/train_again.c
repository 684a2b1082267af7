#include "stages/train/train_again.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitoring/log.h"

uint64_t train_again_hash(const struct train *train) {
  const int64_t count = grid_micro_steps(&train->grid) * FLOW_PARTS;
  return hash_bytes(train->scalars, (size_t)count * sizeof *train->scalars);
}

static int64_t add_ranks(char out[TRAIN_AGAIN_BYTES], const struct train_again_rank *ranks,
                         int count) {
  size_t used = 0;
  int64_t found = 0;
  for (int r = 0; r < count; r++) {
    if (!ranks[r].other) continue;
    if (used < TRAIN_AGAIN_BYTES)
      used += (size_t)snprintf(out + used, TRAIN_AGAIN_BYTES - used, "%srank %d on host %s",
                               found ? ", " : "", r, ranks[r].host);
    found++;
  }
  return found;
}

void train_again_name(char out[TRAIN_AGAIN_BYTES], const struct train_again_rank *ranks,
                      int count) {
  if (add_ranks(out, ranks, count)) return;
  bool several = false;
  for (int r = 1; r < count; r++) several = several || strcmp(ranks[r].host, ranks[0].host) != 0;
  snprintf(out, TRAIN_AGAIN_BYTES, several ? "a host of this job, from %s on" : "host %s",
           ranks[0].host);
}

static enum status say(struct train *train, const struct train_again_rank *mine,
                       struct train_again_rank *all, const char *culprit) {
  char names[TRAIN_AGAIN_BYTES];
  TRY(comm_gather(train->grid.world, all, mine, (int64_t)sizeof *mine, 0));
  if (train->grid.world->rank != 0) return STATUS_OK;
  train_again_name(names, all, train->grid.world->size);
  log_warn(train->stage->log,
           "step %" PRId64
           ": %s was not finite and is, computed again: a processor or memory of %s "
           "may be failing; have it tested",
           train->counts.step + 1, culprit, names);
  return STATUS_OK;
}

enum status train_again_report(struct train *train, const char *culprit, uint64_t first) {
  struct comm *world = train->grid.world;
  struct arena arena;
  struct train_again_rank mine = {.other = train_again_hash(train) != first};
  const size_t bytes = (size_t)world->size * sizeof mine;
  gethostname(mine.host, sizeof mine.host - 1);
  TRY(comm_agree(world, arena_init(&arena, "hosts", bytes + ARENA_ALIGNMENT)));
  const enum status status =
      say(train, &mine, arena_take(&arena, (size_t)world->size * sizeof mine), culprit);
  arena_free(&arena);
  return status;
}
