/* Which rank counts a node's options admit. */
#ifndef PIPELINE_CONFIG_RANKS_H
#define PIPELINE_CONFIG_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/config/kinds.h"
#include "pipeline/config/options.h"

/* Whether `ranks` ranks can run a node of this kind: training cuts its batch into micro_shards
 * equal pieces and gives each rank the same number of them, so the count must divide micro_shards,
 * be a multiple of vocabulary_group and, with canonical reductions, a power of two; the other kinds
 * take any count. Local. */
bool ranks_admitted(const struct options *options, enum kind kind, int64_t ranks);

/* As ranks_admitted. Local. MISMATCH naming the node and every admissible count. */
enum status ranks_check(const struct options *options, enum kind kind, const char *node,
                        int64_t ranks);

#endif
