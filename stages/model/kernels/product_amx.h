/* Products of bf16 in the processor's own tiles (AMX), any shape and any kind of product.h. */
#ifndef STAGES_MODEL_KERNELS_PRODUCT_AMX_H
#define STAGES_MODEL_KERNELS_PRODUCT_AMX_H

#include "stages/model/kernels/product.h"
#include "stages/model/kernels/scratch.h"

/* Computes a product of bf16 with the promises of product_run. `pieces` holds what each thread
 * packs, `shared` what all read. Call where processor_has_tiles(), outside of parallel regions.
 * Local. */
void product_amx_run(const struct product *product, struct scratch *pieces, struct scratch *shared);

#endif
