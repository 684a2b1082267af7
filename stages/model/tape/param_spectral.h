/* Initial values of a given largest singular value. */
#ifndef STAGES_MODEL_TAPE_PARAM_SPECTRAL_H
#define STAGES_MODEL_TAPE_PARAM_SPECTRAL_H

#include "pipeline/base/arena.h"
#include "stages/model/tape/param.h"

/* Divides a whole matrix, filled with independent normal numbers, by its largest singular value,
 * as forty rounds of power iteration find it (within a few per cent), and multiplies it by
 * param->scale. Scratch of `arena`, real, is given back. The same bits for any number of threads.
 * Local. */
void param_spectral_scale(const struct param *param, enum dtype dtype, struct arena *arena);

#endif
