/* Rough sizes of what a node reads and makes, for `millrace plan`. */
#ifndef PIPELINE_DRIVER_ESTIMATE_H
#define PIPELINE_DRIVER_ESTIMATE_H

#include <stdint.h>

#include "pipeline/base/error.h"
#include "pipeline/driver/run.h"

struct estimate {
  uint64_t input_bytes; /* files and finished nodes it reads */
  uint64_t parameters;  /* of the network it trains, or 0 */
  uint64_t disk_bytes;  /* it is likely to write, checkpoints included */
};

/* Estimates node `index`; `all` holds the estimates of the nodes before it in the order. Sizes of
 * what is finished are exact, others follow from the input's. Local. */
enum status estimate_node(struct estimate *all, const struct run *run, size_t index);

#endif
