/* The stage `tokenize`: text to shards of token ids, and the tokenizer.
 *
 * Makes in its folder: train-TAG-NNNNN and held_out-TAG-NNNNN (.safetensors.zst; shards.h),
 * tokenizer.json and tokenizer.model, statistics.json. While it works, parts/ is its journal: a
 * stopped stage goes on after the last finished unit of input, with any number of ranks. The same
 * input and options give the same bytes for any number of ranks.
 */
#ifndef STAGES_TOKENIZE_TOKENIZE_STAGE_H
#define STAGES_TOKENIZE_TOKENIZE_STAGE_H

#include "stages/stage.h"

/* Runs the stage. Collective. MISMATCH for missing or empty input and for what does not fit
 * together, DAMAGED for broken input, WRITE; STOPPED after a request to stop. */
enum status tokenize_stage(struct stage *stage);

#endif
