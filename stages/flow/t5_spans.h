/* Span corruption (Raffel et al. 2020, section 3.1.4, and the released code): spans of a text are
 * taken out, each replaced by a sentinel; what is to be written is each sentinel and its span.
 *
 *   a b c d e f g h  ->  inputs  a b <0> e f <1> h end     targets  <0> c d <1> g end
 *
 * How many tokens and spans that is depends on the length of the text alone, so that inputs and
 * targets of full rows have no padding.
 */
#ifndef STAGES_FLOW_T5_SPANS_H
#define STAGES_FLOW_T5_SPANS_H

#include <stdint.h>

#include "pipeline/base/random.h"

/* Lengths of a text of some tokens. */
struct t5_lengths {
  int64_t noise, spans;    /* tokens taken out, and in how many spans */
  int64_t inputs, targets; /* with sentinels and the end */
};

struct t5_rule {
  double share;          /* of tokens that are taken out: 0.15 */
  double span;           /* mean length: 3 */
  int32_t sentinel, end; /* ids: of sentinel 0, those of the others count down; of the end */
};

/* A text of less than two tokens has no targets. Counts are rounded half to even. Local. */
struct t5_lengths t5_lengths_of(const struct t5_rule *rule, int64_t tokens);

/* Writes inputs and targets of t5_lengths_of(count); all divisions into spans are as likely. `room`
 * holds 2 * spans numbers. Local. */
void t5_corrupt(const struct t5_rule *rule, const int32_t *tokens, int64_t count,
                struct random_stream stream, int64_t *room, int32_t *inputs, int32_t *targets);

#endif
