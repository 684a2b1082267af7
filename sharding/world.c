#include "sharding/world.h"

#include <inttypes.h>
#include <string.h>

#include "sharding/world_rank.h"

enum { SESSION_BYTES = 1 << 20 };

static int first_on_host(const struct world_rank *ranks, int rank) {
  int first = 0;
  while (strcmp(ranks[first].host, ranks[rank].host) != 0) first++;
  return first;
}

static int64_t count_bits(const uint64_t *words) {
  int64_t bits = 0;
  for (int i = 0; i < WORLD_WORDS; i++)
    for (uint64_t word = words[i]; word; word &= word - 1) bits++;
  return bits;
}

static bool overlap(const uint64_t *a, const uint64_t *b) {
  for (int i = 0; i < WORLD_WORDS; i++)
    if (a[i] & b[i]) return true;
  return false;
}

/* The first other rank on the same host bound to a core of `rank`, or -1. */
static int shares_core_with(const struct world_rank *ranks, int rank) {
  for (int r = 0; r < rank; r++)
    if (ranks[r].bound && ranks[rank].bound && strcmp(ranks[r].host, ranks[rank].host) == 0 &&
        overlap(ranks[r].cores, ranks[rank].cores))
      return r;
  return -1;
}

struct host {
  int64_t ranks;
  int64_t processors;
};

static struct host count_host(const struct world_rank *ranks, int size, int first) {
  struct host host = {0};
  uint64_t allowed[WORLD_WORDS] = {0};
  for (int r = first; r < size; r++) {
    if (strcmp(ranks[r].host, ranks[first].host) != 0) continue;
    host.ranks++;
    for (int i = 0; i < WORLD_WORDS; i++) allowed[i] |= ranks[r].allowed[i];
  }
  host.processors = count_bits(allowed);
  return host;
}

static enum status check_space(const struct world_rank *rank, int64_t ranks,
                               const struct world_expectation *expectation) {
  const uint64_t each =
      expectation->shared_bytes ? expectation->shared_bytes : (uint64_t)WORLD_SHARED_BYTES;
  const uint64_t needed = each * (uint64_t)ranks;
  CHECK(rank->shared_free_bytes >= needed, STATUS_ENVIRONMENT,
        "host %s: /dev/shm has %" PRIu64 " bytes free; %" PRId64 " ranks need %" PRIu64
        "; enlarge it (docker run --shm-size) or use fewer ranks a host",
        rank->host, rank->shared_free_bytes, ranks, needed);
  CHECK(rank->session_free_bytes >= SESSION_BYTES, STATUS_ENVIRONMENT,
        "host %s: the launcher's session folder %s has %" PRIu64
        " bytes free; free some or point TMPDIR elsewhere",
        rank->host, expectation->session_folder, rank->session_free_bytes);
  return STATUS_OK;
}

static enum status report_host(const struct world_rank *ranks, int size, int first,
                               const struct world_expectation *expectation,
                               struct world_report *report, struct text *lines) {
  const struct host host = count_host(ranks, size, first);
  const int64_t threads = expectation->threads > 0 ? expectation->threads : 1;
  report->hosts++;
  TRY(check_space(&ranks[first], host.ranks, expectation));
  if (host.ranks * threads <= host.processors) return STATUS_OK;
  report->oversubscribed = true;
  return text_format(
      lines, "host %s: %" PRId64 " ranks of %" PRId64 " threads on %" PRId64 " processors; %s\n",
      ranks[first].host, host.ranks, threads, host.processors,
      report->yields ? "waiting ranks yield"
                     : "waiting ranks spin unless the launcher set mpi_yield_when_idle");
}

static enum status report_rank(const struct world_rank *ranks, int rank,
                               struct world_report *report, struct text *lines) {
  const struct world_rank *r = &ranks[rank];
  TRY(text_format(lines, "rank %d: host %s, processors %s%s, memory nodes %s, %d thread%s %s\n",
                  rank, r->host, r->processors, r->bound ? "" : " (not bound)", r->nodes,
                  r->threads, r->threads == 1 ? "" : "s",
                  r->threads_bound ? "bound" : "not bound"));
  const int other = shares_core_with(ranks, rank);
  if (other < 0) return STATUS_OK;
  report->cores_shared = true;
  return text_format(lines, "rank %d shares a core of host %s with rank %d\n", rank, r->host,
                     other);
}

static enum status report_all(const struct world_rank *ranks, int size,
                              const struct world_expectation *expectation,
                              struct world_report *report, struct text *lines) {
  for (int r = 0; r < size; r++) TRY(report_rank(ranks, r, report, lines));
  for (int r = 0; r < size; r++)
    if (first_on_host(ranks, r) == r) TRY(report_host(ranks, size, r, expectation, report, lines));
  return STATUS_OK;
}

static enum status check_count(const struct comm *world,
                               const struct world_expectation *expectation) {
  CHECK(expectation->ranks == 0 || expectation->ranks == world->size, STATUS_ENVIRONMENT,
        "MPI sees %d rank%s where %s started %" PRId64
        ": launcher and MPI do not understand each other; use mpirun, or srun --mpi=pmix with an "
        "Open MPI built for the same PMIx",
        world->size, world->size == 1 ? "" : "s",
        expectation->launcher ? expectation->launcher : "the launcher", expectation->ranks);
  return STATUS_OK;
}

enum status world_check(struct comm *world, const struct world_expectation *expectation,
                        struct world_report *report, struct text *lines) {
  struct world_rank own;
  struct arena arena = {0};
  *report = (struct world_report){.yields = world->yields};
  TRY(comm_agree(world, check_count(world, expectation)));
  TRY(comm_agree(world, world_rank_fill(&own, expectation->session_folder)));
  enum status status = STATUS_OK;
  if (world->rank == 0) status = arena_init(&arena, "ranks", (size_t)world->size * sizeof own);
  TRY(comm_agree(world, status));
  struct world_rank *ranks =
      arena.base ? arena_take(&arena, (size_t)world->size * sizeof own) : NULL;
  TRY_OR(status, done, comm_gather(world, ranks, &own, (int64_t)sizeof own, 0));
  if (ranks) status = report_all(ranks, world->size, expectation, report, lines);
  TRY_OR(status, done, comm_agree(world, status));
  TRY_OR(status, done, comm_broadcast(world, report, (int64_t)sizeof *report, 0));
done:
  arena_free(&arena);
  return status;
}
