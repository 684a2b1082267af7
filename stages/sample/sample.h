/* The stage `sample`: texts from a generator. */
#ifndef STAGES_SAMPLE_SAMPLE_H
#define STAGES_SAMPLE_SAMPLE_H

#include "pipeline/base/error.h"
#include "stages/stage.h"

/* Draws `samples` texts for each number of network calls in `nfe` from the generator upstream into
 * shards "nfe8-..." ("samples-..." where there is no such number), with columns tokens (I32
 * [positions]) and text (U8, ragged). Facts of the manifest: none; timings:
 * tokens_per_second.NAME. Collective over stage->comm. STOPPED when asked to stop, after finished
 * units; MISMATCH when the generator, its tokenizer or the node do not fit together. */
enum status sample_stage(struct stage *stage);

#endif
