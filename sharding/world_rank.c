#include "sharding/world_rank.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void set_words(uint64_t *words, hwloc_const_bitmap_t bitmap) {
  for (int i = hwloc_bitmap_first(bitmap); i >= 0 && i < WORLD_PROCESSORS_MAX;
       i = hwloc_bitmap_next(bitmap, i))
    words[i / 64] |= UINT64_C(1) << (i % 64);
}

/* All processors of the cores that `allowed` touches. */
static void set_cores(uint64_t *words, hwloc_topology_t topology, hwloc_const_bitmap_t allowed) {
  const int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  set_words(words, allowed);
  for (int i = 0; i < cores; i++) {
    const hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)i);
    if (hwloc_bitmap_intersects(core->cpuset, allowed)) set_words(words, core->cpuset);
  }
}

static void describe(struct world_rank *rank, hwloc_topology_t topology,
                     hwloc_const_bitmap_t allowed, hwloc_bitmap_t nodes) {
  hwloc_bitmap_list_snprintf(rank->processors, sizeof rank->processors, allowed);
  hwloc_cpuset_to_nodeset(topology, allowed, nodes);
  hwloc_bitmap_list_snprintf(rank->nodes, sizeof rank->nodes, nodes);
  rank->bound = !hwloc_bitmap_isequal(allowed, hwloc_topology_get_topology_cpuset(topology));
  set_words(rank->allowed, allowed);
  set_cores(rank->cores, topology, allowed);
}

/* Whether the calling thread may run on one processor only. */
static bool is_bound(hwloc_topology_t topology) {
  hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
  const bool known = allowed && hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD) == 0;
  const bool bound = known && hwloc_bitmap_weight(allowed) == 1;
  hwloc_bitmap_free(allowed);
  return bound;
}

static void describe_threads(struct world_rank *rank, hwloc_topology_t topology) {
  bool bound = true;
  int threads = 0;
#pragma omp parallel reduction(&& : bound) reduction(+ : threads)
  {
    threads++;
    bound = is_bound(topology);
  }
  rank->threads = threads;
  rank->threads_bound = bound;
}

static enum status fill_processors(struct world_rank *rank) {
  hwloc_topology_t topology;
  enum status status = STATUS_OK;
  CHECK(hwloc_topology_init(&topology) == 0, STATUS_ENVIRONMENT, "hwloc cannot start");
  hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
  hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
  if (!allowed || !nodes || hwloc_topology_load(topology) != 0 ||
      hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD) != 0)
    status = error_raise(STATUS_ENVIRONMENT, __FILE__, __LINE__, __func__,
                         "hwloc cannot read the processors of this process");
  else
    describe(rank, topology, allowed, nodes);
  if (status == STATUS_OK) describe_threads(rank, topology);
  hwloc_bitmap_free(nodes);
  hwloc_bitmap_free(allowed);
  hwloc_topology_destroy(topology);
  return status;
}

static uint64_t free_bytes(const char *folder) {
  struct statvfs space;
  if (!folder || statvfs(folder, &space) != 0) return UINT64_MAX;
  return (uint64_t)space.f_bavail * space.f_frsize;
}

enum status world_rank_fill(struct world_rank *rank, const char *session_folder) {
  memset(rank, 0, sizeof *rank);
  if (gethostname(rank->host, sizeof rank->host - 1) != 0)
    snprintf(rank->host, sizeof rank->host, "unknown");
  rank->shared_free_bytes = free_bytes("/dev/shm");
  rank->session_free_bytes = free_bytes(session_folder);
  return fill_processors(rank);
}
