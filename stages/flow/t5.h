/* The T5 that a pretrain node of method t5 trains, for those who use its encoder. */
#ifndef STAGES_FLOW_T5_H
#define STAGES_FLOW_T5_H

#include <stdint.h>

#include "pipeline/config/options.h"
#include "stages/model/networks/t5_config.h"

/* Of a tokenizer without sentinels of its own these many ids are added behind its own. */
enum { T5_ADDED_SENTINELS = 100 };

/* The shape that the options of such a node give: v1.1. Local. */
struct t5_config t5_config_of(const struct options *options, int64_t vocabulary);

#endif
