/* What one rank tells the others about where it runs. Only world*.c include this. */
#ifndef SHARDING_WORLD_RANK_H
#define SHARDING_WORLD_RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

enum { WORLD_PROCESSORS_MAX = 2048, WORLD_WORDS = WORLD_PROCESSORS_MAX / 64 };

struct world_rank {
  char host[64];
  char processors[128];          /* list such as "0-3,8" */
  char nodes[64];                /* memory nodes of those processors */
  bool bound;                    /* to fewer processors than the host has */
  int threads;                   /* of an OpenMP region */
  bool threads_bound;            /* each to one processor; else they move among those above */
  uint64_t cores[WORLD_WORDS];   /* all processors of the cores it may use */
  uint64_t allowed[WORLD_WORDS]; /* processors it may use */
  uint64_t shared_free_bytes;    /* in /dev/shm; UINT64_MAX = not known */
  uint64_t session_free_bytes;
};

/* Asks the system about this process. Local. ENVIRONMENT when the topology cannot be read. */
enum status world_rank_fill(struct world_rank *rank, const char *session_folder);

#endif
