/* BLEU of a corpus (Papineni et al. 2002) as sacreBLEU computes it (Post 2018): lower case, tokens
 * of mteval 13a, one reference, exponential smoothing, effective order. */
#ifndef STAGES_EVALUATE_BLEU_H
#define STAGES_EVALUATE_BLEU_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "stages/evaluate/words.h"

enum { BLEU_ORDER = 4 };

/* Zero-initialise. */
struct bleu {
  int64_t correct[BLEU_ORDER], total[BLEU_ORDER]; /* n-grams */
  int64_t length, reference_length;               /* tokens */
  struct words system, reference;                 /* scratch, owned */
  struct text lowered, tokens;                    /* scratch, owned */
};

/* Adds one text and its reference. Local. ENVIRONMENT when memory is out. */
enum status bleu_add(struct bleu *bleu, const struct text *text, const struct text *reference);

/* The score of what was added, 0 to 100. Local. */
double bleu_score(const struct bleu *bleu);
void bleu_free(struct bleu *bleu);

/* Replaces `out` by the 13a tokens of a text, separated by single spaces. Local. ENVIRONMENT when
 * memory is out. */
enum status bleu_tokenize(struct text *out, const char *bytes, size_t count);

#endif
