/* Multiple-choice questions, answered by the likelihood of the answers.
 *
 * A file of questions has one JSON object a line: {"context": TEXT, "options": [TEXT, ...],
 * "answer": INDEX}. An option is scored as what follows its context: by the exact likelihood under a
 * model of method ar, by a bound on it (`embedded`, flow/cfm_bound.h) under a categorical flow, with
 * the same times and noise for all options of a question. The context is given; the lowest negative
 * log-likelihood is the model's answer.
 */
#ifndef STAGES_EVALUATE_CHOICES_H
#define STAGES_EVALUATE_CHOICES_H

#include "monitoring/evaluation.h"
#include "stages/evaluate/diversity.h"
#include "stages/flow/solo.h"
#include "stages/tokenize/tokenizer.h"

/* Questions as token rows, an option each. Zero-initialise. */
struct choices {
  int64_t questions, rows, positions;
  int32_t *tokens;   /* owned: [rows, positions] */
  int32_t *lengths;  /* owned: [rows] */
  int64_t *prefix;   /* owned: [rows] tokens of the context */
  int64_t *question; /* owned: [rows] */
  bool *correct;     /* owned: [rows] */
};

/* Reads the questions at `path`. A context that leaves no room for its longest option loses its
 * beginning. Local. MISMATCH names file and line: not such a question, an option without a token or
 * of more than `positions`; ENVIRONMENT when memory is out. choices_free also on failure. */
enum status choices_read(struct choices *choices, struct tokenizer *tokenizer, int64_t positions,
                         int32_t pad, const char *path);
void choices_free(struct choices *choices);

/* Adds the shares of questions that the model of `node` answers right, by the sum over an option's
 * tokens ("choices") and by the mean ("choices, by token"). Collective over stage->comm. The
 * statuses of deal_rows; ENVIRONMENT when memory is out. */
enum status choices_measure(struct evaluation *evaluation, const struct choices *choices,
                            struct solo *solo, const struct stage *stage,
                            const struct recipe_node *node);

#endif
