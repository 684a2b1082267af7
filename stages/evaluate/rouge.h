/* ROUGE-1, -2 and -L (Lin 2004) as rouge-score computes them, words stemmed: F1 of common words,
 * pairs of words, and the longest common subsequence. */
#ifndef STAGES_EVALUATE_ROUGE_H
#define STAGES_EVALUATE_ROUGE_H

#include "pipeline/base/error.h"
#include "stages/evaluate/words.h"

enum rouge_kind { ROUGE_1, ROUGE_2, ROUGE_L, ROUGE_KINDS };

/* Zero-initialise. */
struct rouge {
  struct words text, reference; /* scratch, owned */
  struct text lowered;          /* scratch, owned */
};

/* scores[ROUGE_KINDS] of one text, 0 to 1. Local. ENVIRONMENT when memory is out. */
enum status rouge_score(double *scores, struct rouge *rouge, const struct text *text,
                        const struct text *reference);
void rouge_free(struct rouge *rouge);

#endif
