/* What this processor has and is good at. */
#ifndef STAGES_MODEL_KERNELS_PROCESSOR_H
#define STAGES_MODEL_KERNELS_PROCESSOR_H

#include <stdbool.h>

/* The best instruction set that there are kernels for. */
enum processor_level { PROCESSOR_PLAIN, PROCESSOR_AVX2, PROCESSOR_AVX512, PROCESSOR_AVX512BF16 };

/* Local. */
enum processor_level processor_level(void);

/* Whether its vectors multiply pairs of bf16 faster than floats. Not so on Intel's cores since
 * Sapphire Rapids, which have tiles (AMX) for that and take the pairs at half the rate of floats
 * (docs/decisions/0011). Local. */
bool processor_has_fast_pairs(void);

/* Whether it has tiles (AMX) that multiply pairs of bf16, and the system lets this process use
 * them, for which the first call asks. Local. */
bool processor_has_tiles(void);

#endif
