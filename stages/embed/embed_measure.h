/* What an encoder's outputs are moved and divided by. */
#ifndef STAGES_EMBED_EMBED_MEASURE_H
#define STAGES_EMBED_EMBED_MEASURE_H

#include "stages/flow/latents.h"
#include "stages/flow/token_rows.h"

/* Measures the valid positions of the first rows and sets the latents' scale to their root mean
 * square, or with `channels` mean and deviation of each channel. Local. MISMATCH when the outputs
 * have no usable size. */
enum status embed_measure(struct latents *latents, struct token_rows *tokens, int64_t rows,
                          bool channels);

#endif
