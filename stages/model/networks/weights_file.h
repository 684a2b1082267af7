/* The weights of a network under the names and shapes of published checkpoints, as safetensors:
 * T5's are those of transformers; ELF's those of the authors' PyTorch code,
 * `blocks.0.attn.qkv.weight` [out, in], but `proj_kernel` and `unembed_kernel` [in, out]. */
#ifndef STAGES_MODEL_NETWORKS_WEIGHTS_FILE_H
#define STAGES_MODEL_NETWORKS_WEIGHTS_FILE_H

#include "pipeline/base/error.h"
#include "stages/model/tape/param.h"

/* Fills the bound parameters of a set that holds one network from F32, F16, BF16 or F64; of sliced
 * tables the rows that are held. Local. MISMATCH names a tensor that is missing, has another shape
 * or is not the network's; DAMAGED as safetensors_open. */
enum status weights_file_read(const struct params *params, enum dtype element, const char *path);

/* Writes them as F32. All rows must be held here. Local. WRITE on failure. */
enum status weights_file_write(const struct params *params, enum dtype element, const char *path);

#endif
