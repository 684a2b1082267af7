/* The weights/ folder of a finished training node, read into parameters. */
#ifndef STAGES_FLOW_MODEL_WEIGHTS_H
#define STAGES_FLOW_MODEL_WEIGHTS_H

#include <stdbool.h>

#include "pipeline/artefact/checkpoint_reader.h"
#include "pipeline/base/error.h"
#include "stages/model/tape/param.h"

struct model_weights {
  struct checkpoint_reader reader; /* its manifest's state holds the model's facts */
};

/* Opens a step of `folder`/weights; 0: the newest. Local. MISMATCH when it is not there, DAMAGED
 * names the file. */
enum status model_weights_open(struct model_weights *weights, const char *folder, int64_t step);
void model_weights_close(struct model_weights *weights);

/* The rows held here, along the first axis of the parameter's shape in files. Local. */
struct checkpoint_rows model_weights_rows(const struct param *param);

/* Fills the bound parameters that are not derived, each with the rows held here, converted to the
 * type it has in memory: the average where one was kept and `raw` is false. Local. MISMATCH names a
 * parameter that is missing or has another shape; DAMAGED names file and block. */
enum status model_weights_read(const struct model_weights *weights, const struct params *params,
                               enum dtype element, bool raw);

#endif
