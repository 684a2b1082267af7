#include "sharding/grid.h"

#include <inttypes.h>

#include "sharding/tree.h"
#include "sharding/window.h"

static struct grid_options fill_defaults(int64_t ranks, const struct grid_options *options) {
  struct grid_options filled = *options;
  if (filled.group_size == 0) filled.group_size = 1;
  if (filled.micro_shards == 0) filled.micro_shards = ranks;
  return filled;
}

/* Appends the counts up to `limit` that divide `items`: "1, 2, 3, 6". */
static enum status list_divisors(struct text *list, int64_t items, int64_t limit) {
  for (int64_t i = 1; i <= items && i <= limit; i++)
    if (items % i == 0) TRY(text_format(list, "%s%" PRId64, i > 1 ? ", " : "", i));
  return STATUS_OK;
}

enum { LISTED_MAX = 4096 };

static enum status check_divides(const char *what, int64_t divisor, int64_t items,
                                 const char *of_what) {
  if (divisor > 0 && items % divisor == 0) return STATUS_OK;
  struct text list = {0};
  const enum status status = list_divisors(&list, items, LISTED_MAX);
  if (status == STATUS_OK)
    error_raise(STATUS_MISMATCH, __FILE__, __LINE__, __func__,
                "%s = %" PRId64 " does not divide %s = %" PRId64 "; choose one of %s", what,
                divisor, of_what, items, list.length ? list.bytes : "none");
  text_free(&list);
  return status == STATUS_OK ? STATUS_MISMATCH : status;
}

enum status grid_check(int64_t ranks, const struct grid_options *options) {
  const struct grid_options o = fill_defaults(ranks, options);
  TRY(check_divides("group_size", o.group_size, ranks, "ranks"));
  if (!o.canonical) return check_divides("ranks", ranks, o.micro_shards, "micro_shards");
  TRY(split_check_admissible("micro_shards", ranks, o.micro_shards));
  if (o.slices > 0) TRY(split_check_admissible("slices", o.group_size, o.slices));
  return STATUS_OK;
}

enum status grid_init(struct grid *grid, struct comm *world, const struct grid_options *options) {
  *grid = (struct grid){0};
  TRY(grid_check(world->size, options));
  const struct grid_options o = fill_defaults(world->size, options);
  grid->world = world;
  grid->micro_shards = o.micro_shards;
  grid->shards = split_even(o.micro_shards, world->size, world->rank);
  grid->canonical = o.canonical;
  TRY(comm_split(&grid->group, world, world->rank / (int)o.group_size));
  TRY(comm_split(&grid->across, world, world->rank % (int)o.group_size));
  TRY(window_open(world, o.ranks_per_node));
  return window_open(&grid->across, o.ranks_per_node);
}

double grid_exposed_seconds(const struct grid *grid) {
  return grid->world->traffic.seconds + grid->group.traffic.seconds + grid->across.traffic.seconds;
}

void grid_free(struct grid *grid) {
  comm_free(&grid->across);
  comm_free(&grid->group);
  *grid = (struct grid){0};
}

enum status grid_sum_scalars(struct grid *grid, double *totals, const double *values,
                             int64_t count) {
  const int64_t own = grid_micro_steps(grid) * count;
  struct arena *scratch = &grid->world->scratch;
  CHECK((uint64_t)(own * grid->world->size) * sizeof(double) <= scratch->size, STATUS_INTERNAL,
        "%" PRId64 " scalars of %" PRId64 " micro-shards exceed the scratch of %zu bytes", count,
        grid->micro_shards, scratch->size);
  double *all = (double *)(void *)scratch->base;
  TRY(comm_allgather(grid->world, all, values, own * (int64_t)sizeof *values));
  for (int64_t i = 0; i < count; i++)
    totals[i] = tree_sum_doubles(all + i, count, grid->micro_shards);
  return STATUS_OK;
}
