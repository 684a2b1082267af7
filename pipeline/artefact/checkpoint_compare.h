/* Two checkpoints compared tensor by tensor. */
#ifndef PIPELINE_ARTEFACT_CHECKPOINT_COMPARE_H
#define PIPELINE_ARTEFACT_CHECKPOINT_COMPARE_H

#include <stdint.h>

#include "pipeline/artefact/checkpoint_reader.h"
#include "pipeline/base/text.h"

struct checkpoint_comparison {
  int64_t tensors;     /* in either */
  int64_t different;   /* missing, of another kind, or of other bytes */
  struct text details; /* owned; a line for each difference, of the state as well */
};

/* Compares all tensors and the states. Local. DAMAGED when either cannot be read. */
enum status checkpoint_compare(struct checkpoint_comparison *comparison,
                               const struct checkpoint_reader *a,
                               const struct checkpoint_reader *b);

#endif
