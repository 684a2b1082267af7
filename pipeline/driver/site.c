#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/driver/launch.h"

/* The first processor of the core that `processor` belongs to; itself when that is not known. */
static size_t first_sibling(size_t processor) {
  char path[128];
  size_t first = processor;
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
           processor);
  FILE *file = fopen(path, "r");
  if (!file) return processor;
  if (fscanf(file, "%zu", &first) != 1) first = processor;
  fclose(file);
  return first;
}

/* Cores of which this process may use a processor. */
static int64_t count_cores(void) {
  cpu_set_t allowed, cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  for (size_t i = 0; i < CPU_SETSIZE; i++) {
    const size_t first = CPU_ISSET(i, &allowed) ? first_sibling(i) : CPU_SETSIZE;
    if (first < CPU_SETSIZE) CPU_SET(first, &cores);
  }
  return CPU_COUNT(&cores);
}

enum status site_beside(char path[PATH_MAX], const char *name) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  CHECK(length > 0, STATUS_ENVIRONMENT, "/proc/self/exe does not say where this program is: %s",
        strerror(errno));
  self[length] = '\0';
  *strrchr(self, '/') = '\0';
  CHECK(snprintf(path, PATH_MAX, "%s/%s", self, name) < PATH_MAX, STATUS_MISMATCH,
        "path too long: '%s/%s'", self, name);
  return STATUS_OK;
}

static enum status find_program(char path[PATH_MAX], const char *given, const char *name) {
  if (!given) TRY(site_beside(path, name));
  if (given)
    CHECK(realpath(given, path), STATUS_ENVIRONMENT, "cannot find '%s': %s", given,
          strerror(errno));
  CHECK(access(path, X_OK) == 0, STATUS_ENVIRONMENT, "cannot run '%s': %s", path, strerror(errno));
  return STATUS_OK;
}

enum status site_find(struct site *site, const struct arguments *arguments) {
  *site = (struct site){.launcher = arguments->launcher ? arguments->launcher : "mpirun",
                        .cores = arguments->cores ? arguments->cores : count_cores(),
                        .root = geteuid() == 0,
                        .by_hand = arguments->stage_program != NULL};
  CHECK(strcmp(site->launcher, "mpirun") == 0 || strcmp(site->launcher, "srun") == 0, STATUS_USAGE,
        "--launcher: expected mpirun or srun, found '%s'", site->launcher);
  TRY(find_program(site->stage, arguments->stage_program, "millrace-stage"));
  /* a stage program given by hand serves for the report as well: it stands in for both */
  TRY(find_program(site->report, arguments->stage_program, "millrace-report"));
  return STATUS_OK;
}
