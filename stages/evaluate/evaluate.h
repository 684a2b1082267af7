/* The stage `evaluate`: every set of samples, and held-out text, under one judge. */
#ifndef STAGES_EVALUATE_EVALUATE_H
#define STAGES_EVALUATE_EVALUATE_H

#include "pipeline/base/error.h"
#include "stages/stage.h"

/* Writes evaluation.json (monitoring/evaluation.h): judge perplexity, token entropy and distinct-n
 * of each set of samples of the sample nodes it is from, the same of as many held-out rows, and the
 * reconstruction of held-out rows by the autoencoders it is from. The judge is the one pretrain
 * node with method ar it is from. Collective over stage->comm. MISMATCH when there is no judge, or
 * tokenizers differ. */
enum status evaluate_stage(struct stage *stage);

#endif
