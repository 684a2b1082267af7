/* What the texts of a sample node are drawn for: sources of pairs, or beginnings and ends of texts,
 * from one side of a tokenize node, with their latents where the formulation reads latents. */
#ifndef STAGES_SAMPLE_GIVEN_H
#define STAGES_SAMPLE_GIVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"
#include "stages/flow/latents.h"
#include "stages/flow/model.h"
#include "stages/flow/token_rows.h"
#include "stages/stage.h"

struct given {
  bool any;                       /* whether something is given */
  int64_t count;                  /* texts of the unit that was read last */
  struct token_rows rows;         /* of that unit */
  struct latents latents;         /* where they are read: of the rows, for what is given */
  int64_t prefix, suffix;         /* tokens given of each text; 0 for pairs */
  int32_t *before, *after;        /* owned: [most] */
  int32_t *beginning;             /* owned: [most, prefix] */
  struct attention_range *ranges; /* owned: [most, positions] */
  struct flow_given shown;        /* points into the above */
};

/* Finds what is given to the texts of a sample node: rows of its side of the nearest tokenize node,
 * and the encoder that the model was trained with. Local. MISMATCH when rows are pairs and the
 * model reads none, or the encoder is not the one that made the latents. given_close afterwards,
 * also on failure. */
enum status given_open(struct given *given, const struct stage *stage, const struct model *model,
                       int64_t most);
void given_close(struct given *given);

/* Reads what is given to texts [first, first + count) and runs the encoder. Local. MISMATCH when a
 * row is shorter than what is given of it; DAMAGED names the row. */
enum status given_read(struct given *given, int64_t first, int64_t count);

/* Fills the part of a request that is given. Local. */
void given_show(const struct given *given, struct flow_request *request);

#endif
